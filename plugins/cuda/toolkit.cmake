# What a CUDA toolkit compiles, and which driver a build with it needs. A test includes this in cmake -P.

# bitnet_cuda_toolkit(<nvcc> <headers> <release> <wrong>): the release, such as 12.9; or why a build with both is
# impossible. The plugin takes the oldest driver from cuda.h: of another major it would reject drivers that run
# the kernels, or accept drivers that cannot load them.
function(bitnet_cuda_toolkit nvcc headers release wrong)
  set(${wrong} "" PARENT_SCOPE)
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE said ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR NOT said MATCHES "release ([0-9]+)\\.([0-9]+)")
    set(${wrong} "'${nvcc} --version' prints no release of CUDA; set BITNET_NVCC to the nvcc of a CUDA toolkit"
      PARENT_SCOPE)
    return()
  endif()
  set(major ${CMAKE_MATCH_1})
  set(${release} ${CMAKE_MATCH_1}.${CMAKE_MATCH_2} PARENT_SCOPE)
  file(STRINGS ${headers}/cuda.h line REGEX "^#define CUDA_VERSION +[0-9]+")
  string(REGEX REPLACE "^#define CUDA_VERSION +([0-9]+).*" "\\1" version "${line}")
  if(NOT version MATCHES "^[0-9]+$")
    set(${wrong} "${headers}/cuda.h has no CUDA_VERSION; set BITNET_CUDA_HEADERS to the folder of the toolkit's cuda.h"
      PARENT_SCOPE)
    return()
  endif()
  math(EXPR of_header "${version} / 1000")
  if(NOT of_header EQUAL major)
    set(${wrong} "${nvcc} is of CUDA ${major}, and ${headers}/cuda.h of CUDA ${of_header}; both must be of one toolkit: \
set BITNET_NVCC and BITNET_CUDA_HEADERS, or configure in a new folder" PARENT_SCOPE)
  endif()
endfunction()

# bitnet_cuda_archs(<nvcc> <wanted> <default> <archs> <wrong>): the architectures to compile for, ascending; or why
# that is impossible. Only of the default list 110 is left out where the compiler does not have it: CUDA 12 calls
# it 101, and such a device runs PTX of 90.
function(bitnet_cuda_archs nvcc wanted default archs wrong)
  set(${wrong} "" PARENT_SCOPE)
  set(chosen ${wanted})
  list(SORT chosen COMPARE NATURAL)
  execute_process(COMMAND ${nvcc} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET RESULT_VARIABLE failed)
  if(wanted STREQUAL default AND NOT failed AND NOT known MATCHES "sm_110\n")
    list(REMOVE_ITEM chosen 110)
  endif()
  foreach(arch IN LISTS chosen)
    if(failed OR NOT known MATCHES "sm_${arch}\n")
      set(${wrong} "${nvcc} does not compile for sm_${arch}; nvcc of CUDA 12.8 or newer or other BITNET_CUDA_ARCHS \
are needed" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(wanted STREQUAL default AND NOT chosen STREQUAL default)
    message(STATUS "Kernels of the cuda backend are not compiled for sm_110, which ${nvcc} does not have; such a GPU "
                   "runs PTX of sm_90")
  endif()
  set(${archs} ${chosen} PARENT_SCOPE)
endfunction()

# bitnet_cuda_needs(<release> <archs> <ptx> <text>): a sentence each on what was compiled and on the driver.
function(bitnet_cuda_needs release archs ptx text)
  string(REGEX REPLACE "\\..*" "" major ${release})
  list(JOIN archs " " built)
  list(JOIN ptx " " compiled)
  set(${text} "CUDA ${release} compiled the kernels, for architectures ${built}. \
The driver must support CUDA ${major}.0 or newer. \
On a GPU without machine code here it compiles PTX (of ${compiled}), and must support CUDA ${release} or newer.\n"
    PARENT_SCOPE)
endfunction()
