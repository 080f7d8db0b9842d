# bitnet_gpu_kernels(<out>): the names of the kernels that every GPU plugin brings, in the order of
# gpu::kernel_id, as kernel_list.hpp has them. A plugin whose kernels are one text each reads them by these.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/kernel_list.hpp)
function(bitnet_gpu_kernels out)
  file(READ ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kernel_list.hpp text)
  string(REGEX MATCH "_OF_ALL\\(X\\).*_OF_SOME\\(X\\) *\\\\" of_all "${text}")
  string(REGEX MATCHALL "X\\([a-z0-9_]+," names "${of_all}")
  list(TRANSFORM names REPLACE "X\\(([a-z0-9_]+)," "\\1")
  if(NOT names)
    message(FATAL_ERROR "kernel_list.hpp has no row X(name, read, written) that CMake can read")
  endif()
  set(${out} ${names} PARENT_SCOPE)
endfunction()

# bitnet_gpu_text(<out> <file>): its text, with that of each file beside it that a line #include "..." names in the
# place of that line.
function(bitnet_gpu_text out file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  cmake_path(GET file PARENT_PATH folder)
  file(READ ${file} text)
  string(REGEX MATCHALL "#include \"[a-z_.]+\"\n" lines "${text}")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ".*\"(.*)\".*" "\\1" part "${line}")
    bitnet_gpu_text(included ${folder}/${part})
    string(REPLACE "${line}" "${included}" text "${text}")
  endforeach()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# bitnet_gpu_texts(<out> <folder> <delimiter> <ending> <part>...): C++ constants of raw text, one for each part and
# for each kernel that every plugin brings, of the files in <folder>; named as the files are.
function(bitnet_gpu_texts out folder delimiter ending)
  bitnet_gpu_kernels(kernels)
  set(sources)
  foreach(name IN LISTS ARGN kernels)
    bitnet_gpu_text(text ${folder}/${name}.${ending})
    string(APPEND sources "inline constexpr char ${name}[] = R\"${delimiter}(${text})${delimiter}\";\n")
  endforeach()
  set(${out} "${sources}" PARENT_SCOPE)
endfunction()
