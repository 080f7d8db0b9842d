# The suites of this folder on plugins/vulkan. Without a device they skip with the plugin's reason.
set(pinned ${BITNET_vulkan_PINNED})

foreach(subject program hostile abi_ops)
  set(name parity.vulkan.${subject})
  bitnet_add_test(${name} SOURCES ${subject}_test.cpp vulkan_layers.cpp vulkan_leaks.cpp
                  LINK bitnet::sdk bitnet_conformance_model Threads::Threads ${CMAKE_DL_LIBS} LABELS parity vulkan)
  set(target test_parity_vulkan_${subject})
  target_compile_definitions(${target} PRIVATE
    BITNET_TIER0_PLUGIN="$<TARGET_FILE:parity_tier0_backend>"
    BITNET_GPU_PLUGIN="$<TARGET_FILE:bitnet-backend-vulkan>")
  target_include_directories(${target} SYSTEM PRIVATE ${BITNET_VULKAN_HEADERS})
  add_dependencies(${target} parity_tier0_backend bitnet-backend-vulkan)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${pinned})

  # Once more under the API's own checks, of what is synchronised, too. Of the programs some that
  # have every kind of command.
  set(some)
  if(subject STREQUAL "program")
    set(some --gtest_filter=*copied*:*exported*:*sequences*:*output_rows*:*statistics*)
  endif()
  add_test(NAME ${name}.validated COMMAND ${target} ${some})
  get_property(environment TEST ${name} PROPERTY ENVIRONMENT)
  set_tests_properties(${name}.validated PROPERTIES LABELS "parity;vulkan" TIMEOUT ${BITNET_TEST_SECONDS}
    SKIP_RETURN_CODE 77 ENVIRONMENT "${environment};VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation;VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT")
endforeach()

bitnet_add_test(parity.vulkan.own SOURCES vulkan_test.cpp vulkan_leaks.cpp
                LINK bitnet::sdk bitnet_conformance_model Threads::Threads ${CMAKE_DL_LIBS} LABELS parity vulkan)
target_compile_definitions(test_parity_vulkan_own PRIVATE
  BITNET_GPU_PLUGIN="$<TARGET_FILE:bitnet-backend-vulkan>")
add_dependencies(test_parity_vulkan_own bitnet-backend-vulkan)
set_property(TEST parity.vulkan.own APPEND PROPERTY ENVIRONMENT ${pinned})

# On a driver without 8-bit and 16-bit types, those that take seconds. tests/cli fails where the driver
# is there and does not work.
if(NOT BITNET_SANITIZE AND NOT BITNET_COVERAGE)
  foreach(row IN ITEMS own "program --gtest_filter=*equals*:*copied*:*exported*:*sequences*:*output_rows*:*statistics*"
                       "abi_ops --gtest_filter=-*no_kernel_sees*")
    separate_arguments(row)
    list(POP_FRONT row subject)
    set(name parity.vulkan.${subject}.swiftshader)
    add_test(NAME ${name} COMMAND test_parity_vulkan_${subject} ${row})
    set_tests_properties(${name} PROPERTIES LABELS "parity;vulkan" TIMEOUT ${BITNET_TEST_SECONDS} SKIP_RETURN_CODE 77
      ENVIRONMENT "VK_DRIVER_FILES=${BITNET_SWIFTSHADER};VK_ICD_FILENAMES=${BITNET_SWIFTSHADER}")
  endforeach()
endif()

set(driver ${PROJECT_SOURCE_DIR}/plugins/vulkan)
bitnet_add_test(parity.vulkan.memory
  SOURCES vulkan_memory_test.cpp ${driver}/physical.cpp ${driver}/forms.cpp ${driver}/vk.cpp
  LINK bitnet_gpu_common ${CMAKE_DL_LIBS} LABELS parity vulkan)
target_include_directories(test_parity_vulkan_memory SYSTEM PRIVATE ${BITNET_VULKAN_HEADERS})
