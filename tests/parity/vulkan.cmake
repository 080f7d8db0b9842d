# The suites of this folder on plugins/vulkan, pinned to Mesa's software driver: other drivers that are
# installed would be probed and take time. Without a device they skip with the plugin's reason.
find_file(BITNET_LAVAPIPE lvp_icd.${CMAKE_SYSTEM_PROCESSOR}.json
  PATHS /usr/share/vulkan/icd.d /etc/vulkan/icd.d NO_DEFAULT_PATH)
set(pinned)
if(BITNET_LAVAPIPE)
  set(pinned "VK_DRIVER_FILES=${BITNET_LAVAPIPE};VK_ICD_FILENAMES=${BITNET_LAVAPIPE}")
endif()

foreach(subject program hostile)
  bitnet_add_test(parity.vulkan.${subject} SOURCES ${subject}_test.cpp
                  LINK bitnet::sdk Threads::Threads ${CMAKE_DL_LIBS} LABELS parity vulkan)
  target_compile_definitions(test_parity_vulkan_${subject} PRIVATE
    BITNET_TIER0_PLUGIN="$<TARGET_FILE:parity_tier0_backend>"
    BITNET_GPU_PLUGIN="$<TARGET_FILE:bitnet-backend-vulkan>")
  add_dependencies(test_parity_vulkan_${subject} parity_tier0_backend bitnet-backend-vulkan)
  set_property(TEST parity.vulkan.${subject} APPEND PROPERTY ENVIRONMENT ${pinned})
endforeach()
