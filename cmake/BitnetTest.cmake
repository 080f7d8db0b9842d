# Tests are found by their place. tests/core/<module>/<subject>_test.cpp is the ctest core.<module>.<subject>,
# which is linked with that module. tests/fuzz/<folder>/<parser>_fuzz.cpp is the target fuzz_<parser>: with BITNET_FUZZ
# a libFuzzer program, and otherwise the ctest fuzz.<parser>, which replays tests/fuzz/<folder>/corpus/<parser>/.

# Conformance data beside the checkout; without it tests skip with a reason.
set(BITNET_SHARED_DATA ${PROJECT_SOURCE_DIR}/../shared/data CACHE PATH "Conformance data, optional")

# Seconds after which a test that hangs is ended: ten times what the longest test takes, so that tests on a busy
# machine do not reach it.
set(BITNET_TEST_SECONDS 1500)

# Sets <variable> to the Python of scripts/setup, which has the packages of tests/reference/requirements.txt, or
# else to any Python: tests then skip if a package is missing.
function(bitnet_find_python variable)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(python ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
  if(NOT EXISTS ${python})
    set(python ${Python3_EXECUTABLE})
  endif()
  set(${variable} ${python} PARENT_SCOPE)
endfunction()

# bitnet_pinned_environment(<variable> <backend>...): sets the variable to the environment in which each of these
# backends has the driver of its tests (BITNET_<name>_PINNED). Stand-ins of drivers are in several folders that the
# dynamic linker searches.
function(bitnet_pinned_environment variable)
  set(pinned)
  foreach(name IN LISTS ARGN)
    list(APPEND pinned ${BITNET_${name}_PINNED})
  endforeach()
  set(folders ${pinned})
  list(FILTER folders INCLUDE REGEX "^LD_LIBRARY_PATH=")
  if(folders)
    list(FILTER pinned EXCLUDE REGEX "^LD_LIBRARY_PATH=")
    list(TRANSFORM folders REPLACE "^LD_LIBRARY_PATH=" "")
    list(JOIN folders ":" folders)
    list(APPEND pinned LD_LIBRARY_PATH=${folders})
  endif()
  set(${variable} "${pinned}" PARENT_SCOPE)
endfunction()

# Build target tests-<label> builds everything that the tests of this label run.
function(bitnet_label_target label)
  if(NOT TARGET tests-${label})
    add_custom_target(tests-${label})
  endif()
  if(ARGN)
    add_dependencies(tests-${label} ${ARGN})
  endif()
endfunction()
# scripts/test builds these targets, even if no test has the label.
foreach(label IN ITEMS core parity cli concurrent threads session select plugin probe reload fuzz)
  bitnet_label_target(${label})
endforeach()

# bitnet_label(<label> <test>...): adds a label to tests that bitnet_add_test() made. What some labels select:
#   attack       hostile input from outside
#   concurrent   several threads, for the lane of ThreadSanitizer
#   core-small   the lane `combinations`: plugins are found, judged and selected, whichever backends were built
#   session      parts of sessions, for the lanes of ThreadSanitizer and of coverage
#   unsanitized  the lane `sanitize` (preset fuzz) leaves these tests out, since they take long with sanitizers, or
#                measure what does not depend on them
function(bitnet_label label)
  foreach(test IN LISTS ARGN)
    set_property(TEST ${test} APPEND PROPERTY LABELS ${label})
    string(REPLACE "." "_" target test_${test})
    bitnet_label_target(${label} ${target})
  endforeach()
endfunction()

# Reading GoogleTest and the C++ library takes half of a test's compile time: tests with the same options share
# one precompiled header.
function(bitnet_read_headers_once target)
  if(NOT BITNET_UNITY)
    return()
  endif()
  if(NOT TARGET test_headers)
    add_executable(test_headers EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/headers.cpp)
    bitnet_compile_options(test_headers)
    set_target_properties(test_headers PROPERTIES BITNET_UNFUZZED ON)
    target_compile_options(test_headers PRIVATE -O0)
    target_compile_features(test_headers PRIVATE cxx_std_23)
    target_link_libraries(test_headers PRIVATE GTest::gtest)
    target_precompile_headers(test_headers PRIVATE <gtest/gtest.h> <algorithm> <expected> <filesystem>
      <fstream> <functional> <span> <string> <thread> <vector>)
  endif()
  target_precompile_headers(${target} REUSE_FROM test_headers)
endfunction()

# bitnet_add_test(<ctest name> SOURCES ... LINK ... [LABELS ...] [COMPUTES])
#
# Optimising a test takes two thirds of its compile time, more with sanitizers, and most tests run for
# milliseconds. COMPUTES: the test computes figures itself and is optimised.
function(bitnet_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPUTES" "" "SOURCES;LINK;LABELS")
  string(REPLACE "." "_" target test_${name})
  add_executable(${target} ${arg_SOURCES})
  bitnet_compile_options(${target})
  set_target_properties(${target} PROPERTIES BITNET_UNFUZZED ON)
  if(arg_COMPUTES)
    target_compile_options(${target} PRIVATE -O1)
  else()
    target_compile_options(${target} PRIVATE -O0)
    bitnet_read_headers_once(${target})
  endif()
  target_compile_features(${target} PRIVATE cxx_std_23)
  target_link_libraries(${target} PRIVATE ${arg_LINK} GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${target})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "BITNET_SHARED_DATA=${BITNET_SHARED_DATA};BITNET_SOURCE_DIR=${PROJECT_SOURCE_DIR};BITNET_BINARY_DIR=${PROJECT_BINARY_DIR}"
    LABELS "${arg_LABELS}" TIMEOUT ${BITNET_TEST_SECONDS} SKIP_RETURN_CODE 77)
  foreach(label IN LISTS arg_LABELS)
    bitnet_label_target(${label} ${target})
  endforeach()
endfunction()

# bitnet_add_fuzzer(<parser> <source> <folder> <library>): the fuzz target of a parser in <library>; its corpus is
# <folder>/corpus/<parser>.
function(bitnet_add_fuzzer parser source module library)
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${module}/corpus/${parser})
  add_executable(fuzz_${parser} ${source})
  bitnet_compile_options(fuzz_${parser})
  target_compile_features(fuzz_${parser} PRIVATE cxx_std_23)
  target_link_libraries(fuzz_${parser} PRIVATE ${library})
  if(BITNET_FUZZ)
    target_link_options(fuzz_${parser} PRIVATE -fsanitize=fuzzer)
    bitnet_label_target(fuzz fuzz_${parser})
  else()
    target_link_libraries(fuzz_${parser} PRIVATE fuzz_replay)
    target_compile_options(fuzz_${parser} PRIVATE -O0)
    add_test(NAME fuzz.${parser} COMMAND fuzz_${parser} ${corpus})
    set_tests_properties(fuzz.${parser} PROPERTIES LABELS "fuzz" TIMEOUT ${BITNET_TEST_SECONDS})
  endif()
endfunction()
