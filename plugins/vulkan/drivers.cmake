# The software driver for this backend's tests: other installed drivers would be opened, too, which
# takes time.
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
# A second driver, with fewer features; scripts/setup downloads it.
set(BITNET_SWIFTSHADER ${PROJECT_SOURCE_DIR}/build/swiftshader/vk_swiftshader_icd.json)
