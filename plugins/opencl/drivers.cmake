# The driver in software that tests of this backend run on, PoCL: others that are installed would be
# opened too, and take time. What it compiled stays in the build folder.
set(pocl_cache ${PROJECT_BINARY_DIR}/tests/parity/pocl)
file(MAKE_DIRECTORY ${pocl_cache})
set(BITNET_opencl_PINNED OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd POCL_CACHE_DIR=${pocl_cache})
set(BITNET_opencl_SETTINGS cache=${pocl_cache}/bitnet)
# PoCL, and the LLVM in it, keep some memory until the process ends.
set(BITNET_opencl_PARITY_ENVIRONMENT BITNET_TEST_KERNEL_CACHE=${pocl_cache}/bitnet
  LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/opencl/leaks.supp:print_suppressions=0)
set(BITNET_opencl_FUZZED bitnet_opencl_driver)
