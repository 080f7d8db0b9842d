# The software driver for this backend's tests, PoCL: other installed drivers would be opened, too,
# which takes time. Our cache stays in the build folder. The driver's compiler cache is shared by
# all presets, because compiling takes most of the time of kernel tests.
set(pocl_cache ${PROJECT_BINARY_DIR}/tests/parity/pocl)
set(BITNET_pocl_compiled ${pocl_cache})
cmake_path(GET PROJECT_BINARY_DIR PARENT_PATH folders)
if(folders STREQUAL "${PROJECT_SOURCE_DIR}/build")
  set(BITNET_pocl_compiled ${folders}/pocl)
endif()
file(MAKE_DIRECTORY ${pocl_cache} ${BITNET_pocl_compiled})
set(BITNET_opencl_PINNED OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd
  POCL_CACHE_DIR=${BITNET_pocl_compiled})
set(BITNET_opencl_SETTINGS cache=${pocl_cache}/bitnet)
# PoCL and its LLVM keep some memory until the process ends.
set(BITNET_opencl_PARITY_ENVIRONMENT BITNET_TEST_SETTING=cache=${pocl_cache}/bitnet
  LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/opencl/leaks.supp:print_suppressions=0)
set(BITNET_opencl_FUZZED bitnet_opencl_driver)
