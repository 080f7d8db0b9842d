# The SDK divides rows among NUMA nodes.
target_link_libraries(test_core_threads_worker_places PRIVATE bitnet::sdk)
