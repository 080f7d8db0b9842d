# The driver for this backend's tests, even on machines with a GPU. tests/level-zero builds it for
# this machine. It computes with PoCL, whose compiler cache is shared by all presets, as in the
# opencl backend. The loader's package includes the image of Level Zero's validation layer.
find_path(BITNET_OPENCL_HEADERS CL/cl.h DOC "Folder of the OpenCL headers")
if(BITNET_CORE AND NOT CMAKE_CROSSCOMPILING AND BITNET_OPENCL_HEADERS)
  set(BITNET_LEVEL_ZERO_STAND_IN ${PROJECT_BINARY_DIR}/tests/level-zero/libze_stand_in.so)
  set(pocl_folder ${PROJECT_BINARY_DIR}/tests/level-zero/pocl)
  cmake_path(GET PROJECT_BINARY_DIR PARENT_PATH folders)
  if(folders STREQUAL "${PROJECT_SOURCE_DIR}/build")
    set(pocl_folder ${folders}/pocl)
  endif()
  file(MAKE_DIRECTORY ${pocl_folder})
  set(BITNET_level-zero_PINNED ZE_ENABLE_ALT_DRIVERS=${BITNET_LEVEL_ZERO_STAND_IN}
    OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd POCL_CACHE_DIR=${pocl_folder}
    BITNET_TEST_ONE_KV=1)  # a module is compiled for each pair of types
endif()
