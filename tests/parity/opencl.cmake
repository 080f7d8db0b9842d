# The suites of this folder on plugins/opencl, pinned to PoCL: other drivers that are installed would
# be opened too. What PoCL compiled stays in the build folder. Without a device they skip with the
# plugin's reason.
set(pocl_cache ${CMAKE_CURRENT_BINARY_DIR}/pocl)
file(MAKE_DIRECTORY ${pocl_cache})
foreach(subject program hostile abi_ops)
  bitnet_add_test(parity.opencl.${subject} SOURCES ${subject}_test.cpp
                  LINK bitnet::sdk bitnet_conformance_model Threads::Threads ${CMAKE_DL_LIBS} LABELS parity opencl)
  target_compile_definitions(test_parity_opencl_${subject} PRIVATE
    BITNET_TIER0_PLUGIN="$<TARGET_FILE:parity_tier0_backend>"
    BITNET_GPU_PLUGIN="$<TARGET_FILE:bitnet-backend-opencl>")
  add_dependencies(test_parity_opencl_${subject} parity_tier0_backend bitnet-backend-opencl)
  set_property(TEST parity.opencl.${subject} APPEND PROPERTY ENVIRONMENT
    OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd POCL_CACHE_DIR=${pocl_cache}
    BITNET_TEST_KERNEL_CACHE=${pocl_cache}/bitnet
    LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/opencl/leaks.supp:print_suppressions=0)
endforeach()
