# bitnet_gpu_kernels(<out>): the names of the kernels that every GPU plugin has, in the order of gpu::kernel_id,
# read from kernel_list.hpp. A plugin with one file per kernel finds its files by these names.
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

# bitnet_gpu_text(<out> <file>): the text of the file; a line #include "..." is replaced with the text of that file.
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

# bitnet_gpu_texts(<out> <folder> <delimiter> <ending> <part>...): C++ constants of raw text, with the names and
# texts of files in <folder>, one for each part and for each kernel that every plugin has.
function(bitnet_gpu_texts out folder delimiter ending)
  bitnet_gpu_kernels(kernels)
  set(sources)
  foreach(name IN LISTS ARGN kernels)
    bitnet_gpu_text(text ${folder}/${name}.${ending})
    string(APPEND sources "inline constexpr char ${name}[] = R\"${delimiter}(${text})${delimiter}\";\n")
  endforeach()
  set(${out} "${sources}" PARENT_SCOPE)
endfunction()
