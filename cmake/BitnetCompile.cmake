# How everything is compiled: bitnet_compile_options(target) applies the house rules to one target.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Speed of our own builds; packagers leave all of them off.
option(BITNET_CCACHE "Compile through ccache where it is installed" OFF)
option(BITNET_FAST_LINKER "Link with mold or lld where installed" OFF)
# Reading the same headers again for each file takes two thirds of the compile time.
option(BITNET_UNITY "Compile the files of a library together, a few at a time" OFF)
set(CMAKE_UNITY_BUILD ${BITNET_UNITY}) # folders may override it
set(CMAKE_UNITY_BUILD_BATCH_SIZE 30)
if(BITNET_CCACHE)
  find_program(BITNET_CCACHE_PROGRAM ccache)
  if(BITNET_CCACHE_PROGRAM)
    set(CMAKE_C_COMPILER_LAUNCHER ${BITNET_CCACHE_PROGRAM})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${BITNET_CCACHE_PROGRAM})
    # CMake writes the path of the tree into unity files. The cache finds the object of another clone only if
    # it compares preprocessed text, which excludes its dependency mode.
    if(BITNET_UNITY)
      set(CMAKE_CXX_COMPILER_LAUNCHER env -u CCACHE_DEPEND ${BITNET_CCACHE_PROGRAM})
    endif()
  endif()
endif()
if(BITNET_FAST_LINKER)
  foreach(linker IN ITEMS mold lld)
    find_program(BITNET_LINKER_${linker} NAMES ld.${linker} ${linker})
    if(BITNET_LINKER_${linker})
      add_link_options(-fuse-ld=${linker})
      break()
    endif()
  endforeach()
endif()

add_library(bitnet_compile INTERFACE)
target_compile_options(bitnet_compile INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow
  # GCC 12 warns of an overlap in every optimised "literal" + std::string() (GCC bug 105651).
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<CONFIG:Release,RelWithDebInfo>>:-Wno-restrict>
  $<$<BOOL:${BITNET_WERROR}>:-Werror>
  # The same bits from every compiler and instruction set: no fused multiply-add behind our back.
  -ffp-contract=off)
if(BITNET_UNITY) # types and names of a file are in one unit with those of its neighbours
  target_compile_options(bitnet_compile INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>
    $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-shadow>)
endif()
if(BITNET_SANITIZE)
  set(sanitize -fsanitize=${BITNET_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(bitnet_compile INTERFACE ${sanitize})
  target_link_options(bitnet_compile INTERFACE ${sanitize})
endif()
if(BITNET_FUZZ) # adds coverage counters for libFuzzer, except in targets marked BITNET_UNFUZZED
  target_compile_options(bitnet_compile INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:BITNET_UNFUZZED>>>:-fsanitize=fuzzer-no-link>)
endif()

# A coverage build counts lines of TARGET only if this is called for it.
function(bitnet_count_lines target)
  if(BITNET_COVERAGE)
    target_compile_options(${target} PRIVATE --coverage)
    target_link_options(${target} PUBLIC --coverage)
  endif()
endfunction()

function(bitnet_compile_options target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:bitnet_compile>)
endfunction()

# For code that runs once per run, most of it on JSON, paths and words: g++ 12 takes twice as long to compile it
# with -O3. Kernels, and code that runs per token or per weight, keep -O3.
function(bitnet_optimise_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
endfunction()
