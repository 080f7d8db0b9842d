# Tests of this backend in addition to the suites of every backend (cmake/BitnetBackend.cmake).
# Without a device they skip with the plugin's reason.
foreach(subject IN ITEMS program hostile abi_ops)
  set(name parity.vulkan.${subject})
  set(target test_parity_vulkan_${subject})
  target_sources(${target} PRIVATE vulkan/layers.cpp vulkan/leaks.cpp)
  target_include_directories(${target} SYSTEM PRIVATE ${BITNET_VULKAN_HEADERS})

  # The same tests with the API's validation layer, including checks of synchronisation. Of the
  # programs, some that contain every kind of command.
  set(some)
  if(subject STREQUAL "program")
    set(some --gtest_filter=*copied*:*exported*:*sequences*:*output_rows*:*statistics*)
  endif()
  add_test(NAME ${name}.validated COMMAND ${target} ${some})
  get_property(environment TEST ${name} PROPERTY ENVIRONMENT)
  set_tests_properties(${name}.validated PROPERTIES LABELS "parity;vulkan;unsanitized"
    TIMEOUT ${BITNET_TEST_SECONDS} SKIP_RETURN_CODE 77 ENVIRONMENT "${environment};VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation;VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT")
endforeach()

bitnet_add_test(parity.vulkan.own SOURCES vulkan/vulkan_test.cpp vulkan/leaks.cpp
                LINK bitnet::sdk bitnet_conformance_model Threads::Threads ${CMAKE_DL_LIBS} LABELS parity vulkan)
target_compile_definitions(test_parity_vulkan_own PRIVATE
  BITNET_GPU_PLUGIN="$<TARGET_FILE:bitnet-backend-vulkan>")
add_dependencies(test_parity_vulkan_own bitnet-backend-vulkan)
set_property(TEST parity.vulkan.own APPEND PROPERTY ENVIRONMENT ${BITNET_vulkan_PINNED})

# Tests that take seconds, on a driver without 8-bit and 16-bit types. cli_test.py fails if the
# driver exists but does not work.
if(NOT BITNET_SANITIZE AND NOT BITNET_COVERAGE)
  foreach(row IN ITEMS own "program --gtest_filter=*equals*:*copied*:*sequences*"
                       "abi_ops --gtest_filter=-*no_kernel_sees*")
    separate_arguments(row)
    list(POP_FRONT row subject)
    set(name parity.vulkan.${subject}.swiftshader)
    add_test(NAME ${name} COMMAND test_parity_vulkan_${subject} ${row})
    set_tests_properties(${name} PROPERTIES LABELS "parity;vulkan" TIMEOUT ${BITNET_TEST_SECONDS} SKIP_RETURN_CODE 77
      ENVIRONMENT "VK_DRIVER_FILES=${BITNET_SWIFTSHADER};VK_ICD_FILENAMES=${BITNET_SWIFTSHADER};BITNET_TEST_ONE_KV=1")
  endforeach()
endif()

bitnet_add_test(parity.vulkan.memory
  SOURCES vulkan/memory_test.cpp ${CMAKE_CURRENT_LIST_DIR}/device_facts.cpp ${CMAKE_CURRENT_LIST_DIR}/forms.cpp
          ${CMAKE_CURRENT_LIST_DIR}/library.cpp
  LINK bitnet_gpu_common ${CMAKE_DL_LIBS} LABELS parity vulkan)
target_include_directories(test_parity_vulkan_memory SYSTEM PRIVATE ${BITNET_VULKAN_HEADERS})

# Concurrent calls of several threads, and the queues behind them.
if(BITNET_SANITIZE STREQUAL "thread" AND TARGET bitnet-backend-conformance)
  foreach(fences IN ITEMS 0 1)
    set(name conformance.vulkan.threads.fences-${fences})
    add_test(NAME ${name} COMMAND bitnet-backend-conformance --suite threads --set fences=${fences}
             $<TARGET_FILE:bitnet-backend-vulkan>)
    set_tests_properties(${name} PROPERTIES LABELS "conformance;vulkan" TIMEOUT ${BITNET_TEST_SECONDS}
      SKIP_RETURN_CODE 77 ENVIRONMENT "${BITNET_vulkan_PINNED}")
  endforeach()
endif()

# The program, with both drivers.
bitnet_add_program_test(vulkan)
if(TEST cli.vulkan)
  set_property(TEST cli.vulkan APPEND PROPERTY LABELS unsanitized)
endif()
