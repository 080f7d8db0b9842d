# bitnet_rocm_targets(<out> <folder of device libraries>): the targets that kernels are compiled for, by
# families, each a list with commas: code for the first of a family is the same for the others, as in LLVM's
# generic targets; tests/rocm/families_test.py checks it. A target without a family here is one of its own.
# Targets before gfx8 are left out: their lanes cannot exchange values by ds_bpermute, and ROCm's runtime does
# not run on them.
set(families gfx802,gfx805 gfx900,gfx902,gfx909,gfx90c gfx1010,gfx1013 gfx1011,gfx1012
  gfx1030,gfx1031,gfx1032,gfx1033,gfx1034,gfx1035,gfx1036 gfx1100,gfx1102 gfx1200,gfx1201)
# RDNA 4, which is newer than clang 15: where the device libraries lack it, a second clang compiles for it.
set(rdna4 "^gfx120[01]")

# Makes, in folder <made>, the numbers of gfx<generation>00 and on that <folder> lacks. They are one number each, which
# expf and log1pf compare with 9000. None of them if the compiler has no such target.
function(bitnet_rocm_make_numbers made folder compiler generation count)
  math(EXPR last "${count} - 1")
  foreach(stepping RANGE ${last})
    set(library oclc_isa_version_${generation}0${stepping}.bc)
    if(EXISTS ${folder}/${library})
      continue()
    endif()
    file(MAKE_DIRECTORY ${made})
    execute_process(COMMAND ${compiler} -x cl -target amdgcn-amd-amdhsa -mcpu=gfx${generation}0${stepping} -nogpulib
      -DBITNET_ROCM_ISA_VERSION=${generation}00${stepping} -emit-llvm -c -o ${made}/${library}
      ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/isa_version.cl OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE failed)
    if(failed)
      file(GLOB numbers ${made}/oclc_isa_version_${generation}0?.bc)
      file(REMOVE ${numbers} ${made}/${library})
      return()
    endif()
  endforeach()
endfunction()

# bitnet_rocm_libraries(<out> <folder of device libraries> <compiler> <compiler for RDNA 4, or nothing>): a folder
# with the same libraries and with those of RDNA 3 and 4 that they lack and the compilers have targets for. Release
# 5.2, which is Debian 12's, has none. Where libraries and compilers have all, it is the folder.
function(bitnet_rocm_libraries out folder compiler for_rdna4)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/device-libraries)
  file(REMOVE_RECURSE ${made})
  bitnet_rocm_make_numbers(${made} ${folder} ${compiler} 11 4)
  if(for_rdna4)
    bitnet_rocm_make_numbers(${made} ${folder} ${for_rdna4} 12 2)
  endif()
  file(GLOB numbers ${made}/*.bc)
  set(${out} ${folder} PARENT_SCOPE)
  if(numbers)
    file(GLOB libraries ${folder}/*.bc)
    foreach(library IN LISTS libraries)
      cmake_path(GET library FILENAME name)
      file(CREATE_LINK ${library} ${made}/${name} SYMBOLIC)
    endforeach()
    set(${out} ${made} PARENT_SCOPE)
  endif()
endfunction()

# bitnet_rocm_command(<out> <compiler> <folder of device libraries>): what compiles a kernel, without target and text.
function(bitnet_rocm_command out compiler libraries)
  set(${out} ${compiler} -x hip --cuda-device-only --no-gpu-bundle-output -nogpuinc
    --rocm-device-lib-path=${libraries} PARENT_SCOPE)
endfunction()

# bitnet_rocm_try(<out> <target> <command>...): empty if the command compiles and links for the target, otherwise what
# the compiler says: it is another clang than that of the device libraries, or has no lld.
function(bitnet_rocm_try out target)
  execute_process(COMMAND ${ARGN} --offload-arch=${target} -o ${CMAKE_CURRENT_BINARY_DIR}/empty.hsaco -
    INPUT_FILE /dev/null OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE failed)
  string(STRIP "${said}" said)
  if(failed AND NOT said)
    set(said "${failed}")
  elseif(NOT failed)
    set(said)
  endif()
  set(${out} "${said}" PARENT_SCOPE)
endfunction()

# bitnet_rocm_compiler_for_rdna4(<out>): the compiler for RDNA 4 where that of the other targets lacks it; nothing if
# RDNA 4 is not wanted or no such compiler is found, which is then reported.
function(bitnet_rocm_compiler_for_rdna4 out)
  set(${out} "" PARENT_SCOPE)
  if(NOT BITNET_ROCM_TARGETS MATCHES "^all$|gfx120[01]" OR EXISTS ${BITNET_ROCM_DEVICE_LIBS}/oclc_isa_version_1201.bc)
    return()
  endif()
  find_program(BITNET_CLANG_FOR_RDNA4 NAMES clang-19
    DOC "Clang 19, with its lld, that compiles the kernels of the rocm backend for RDNA 4")
  if(BITNET_CLANG_FOR_RDNA4)
    set(${out} ${BITNET_CLANG_FOR_RDNA4} PARENT_SCOPE)
  else()
    bitnet_rocm_report_no_rdna4("clang-19 is not found")
  endif()
endfunction()

# bitnet_rocm_check_rdna4(<in and out> <libraries>): clears the compiler for RDNA 4 and removes its numbers from the
# libraries if it does not compile with them. Code objects are of version 5: the libraries know no newer one, and any
# ROCm that drives RDNA 4 loads it.
function(bitnet_rocm_check_rdna4 compiler libraries)
  if(NOT ${compiler})
    return()
  endif()
  bitnet_rocm_command(command ${${compiler}} ${libraries})
  bitnet_rocm_try(said gfx1201 ${command} -mcode-object-version=5)
  if(said)
    bitnet_rocm_report_no_rdna4("${said}")
    file(GLOB numbers ${CMAKE_CURRENT_BINARY_DIR}/device-libraries/oclc_isa_version_12*.bc)
    foreach(number IN LISTS numbers)
      if(NOT IS_SYMLINK ${number}) # links are libraries that were there
        file(REMOVE ${number})
      endif()
    endforeach()
    set(${compiler} "" PARENT_SCOPE)
  endif()
endfunction()

function(bitnet_rocm_report_no_rdna4 why)
  message(STATUS "Backend rocm has no code for RDNA 4 (gfx1200, gfx1201): clang 19 with its lld is needed (on \
Debian: clang-19 lld-19): ${why}")
endfunction()

function(bitnet_rocm_targets out folder)
  file(GLOB found ${folder}/oclc_isa_version_*.bc)
  set(known)
  foreach(file IN LISTS found)
    cmake_path(GET file STEM name)
    string(REPLACE "oclc_isa_version_" "" number ${name})
    if(NOT number MATCHES "^[67]..$")
      list(APPEND known gfx${number})
    endif()
  endforeach()
  set(wanted ${BITNET_ROCM_TARGETS})
  if(wanted STREQUAL "all")
    set(wanted ${known})
  endif()
  list(SORT wanted COMPARE NATURAL)
  list(REMOVE_DUPLICATES wanted)
  set(all)
  foreach(target IN LISTS wanted)
    if(NOT target MATCHES "^gfx[0-9a-f]+$")
      message(FATAL_ERROR "BITNET_ROCM_TARGETS is all or names such as gfx90a;gfx1030, not '${target}'")
    endif()
    if(NOT target IN_LIST known)
      message(FATAL_ERROR "BITNET_ROCM_TARGETS names ${target}, of which ${folder} has no library "
                          "(oclc_isa_version_*.bc); it has ${known}. For gfx1200 and gfx1201 the build makes one where "
                          "clang-19 and lld-19 are installed")
    endif()
    set(mine ${target})
    foreach(family IN LISTS families)
      string(REPLACE "," ";" members ${family})
      if(target IN_LIST members)
        set(mine)
        foreach(member IN LISTS members)
          if(member IN_LIST wanted)
            list(APPEND mine ${member})
          endif()
        endforeach()
        list(JOIN mine "," mine)
      endif()
    endforeach()
    list(APPEND all ${mine})
  endforeach()
  list(REMOVE_DUPLICATES all)
  set(${out} ${all} PARENT_SCOPE)
endfunction()

# bitnet_rocm_instructions(<out> <target>): definitions for the byte products that a target has: LLVM's
# features dot1-insts (v_dot4_i32_i8), and dot8-insts (v_dot4_i32_iu8, of signed and unsigned bytes), and for its
# matrix cores, where kernels/matrix.cuh has them.
function(bitnet_rocm_instructions out target)
  set(found)
  if(target MATCHES "^gfx1[12]..$")
    set(found -DBITNET_ROCM_DOTS -DBITNET_ROCM_MIXED_DOTS)
  elseif(target MATCHES "^gfx(906|908|90a|94.|950|1011|1012|103.)$")
    set(found -DBITNET_ROCM_DOTS)
  endif()
  if(target MATCHES "^gfx(908|90a)$")
    list(APPEND found -DBITNET_ROCM_MATRIX=1)
  elseif(target MATCHES "^gfx(94.|950|120[01])$")
    list(APPEND found -DBITNET_ROCM_MATRIX=2)
  elseif(target MATCHES "^gfx11..$")
    list(APPEND found -DBITNET_ROCM_MATRIX=4)
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()
