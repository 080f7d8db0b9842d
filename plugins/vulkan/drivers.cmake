# The driver in software that tests of this backend run on: others that are installed would be opened
# too, and take time.
find_file(BITNET_LAVAPIPE lvp_icd.${CMAKE_SYSTEM_PROCESSOR}.json
  PATHS /usr/share/vulkan/icd.d /etc/vulkan/icd.d NO_DEFAULT_PATH)
set(BITNET_vulkan_PINNED)
if(BITNET_LAVAPIPE)
  set(BITNET_vulkan_PINNED "VK_DRIVER_FILES=${BITNET_LAVAPIPE};VK_ICD_FILENAMES=${BITNET_LAVAPIPE}")
endif()
if(BITNET_SANITIZE STREQUAL "thread") # drivers, by name
  list(APPEND BITNET_vulkan_PINNED
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1:suppressions=${PROJECT_SOURCE_DIR}/tests/drivers.tsan")
endif()
# A second one, with fewer features: scripts/setup fetches it.
set(BITNET_SWIFTSHADER ${PROJECT_SOURCE_DIR}/build/swiftshader/vk_swiftshader_icd.json)
