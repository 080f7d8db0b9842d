# The driver in software that tests of this backend run on, PoCL: others that are installed would be
# opened too, and take time. What we keep of it stays in the build folder; what the driver keeps of its
# compiler's work, nearly all that tests of kernels take, serves the folders of all presets.
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
# PoCL, and the LLVM in it, keep some memory until the process ends.
set(BITNET_opencl_PARITY_ENVIRONMENT BITNET_TEST_SETTING=cache=${pocl_cache}/bitnet
  LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/opencl/leaks.supp:print_suppressions=0)
set(BITNET_opencl_FUZZED bitnet_opencl_driver)
