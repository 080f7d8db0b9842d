# bitnet_simt_headers(<out>): what kernels in the language of CUDA and HIP include, beside their backend's own
# headers. CMake finds no headers of kernels by itself.
function(bitnet_simt_headers out)
  set(common ${PROJECT_SOURCE_DIR}/plugins/gpu-common)
  set(contract ${PROJECT_SOURCE_DIR}/abi/include/bitnet/abi)
  file(GLOB headers CONFIGURE_DEPENDS ${common}/simt/*.cuh ${common}/simt/*.hpp)
  list(APPEND headers ${common}/kernels.hpp ${common}/kernel_list.hpp)
  if(EXISTS ${contract}) # the headers of an installed SDK do not change
    foreach(name IN ITEMS base ops program tensor)
      list(APPEND headers ${contract}/${name}.h)
    endforeach()
  endif()
  set(${out} ${headers} PARENT_SCOPE)
endfunction()
