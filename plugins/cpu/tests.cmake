# Tests of this backend. The tests parity.{program,hostile,abi_ops} compute with the plain backend; where this
# backend is built, also with this one, in each of its instruction sets.
foreach(subject IN ITEMS program hostile abi_ops)
  target_compile_definitions(test_parity_${subject} PRIVATE BITNET_CPU_PLUGIN="$<TARGET_FILE:bitnet-backend-cpu>")
  target_link_libraries(test_parity_${subject} PRIVATE bitnet_cpu_kernels)
  add_dependencies(test_parity_${subject} bitnet-backend-cpu) # opened, not linked
endforeach()
target_sources(test_parity_program PRIVATE cpu/isa_parameter_test.cpp)

set(emulated)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The AMX kernels without AMX: their tiles are plain memory.
  set(emulated cpu/tile_emulator.cpp cpu/tile_emulator_test.cpp cpu/linear_panel_emulated.cpp)
  get_source_file_property(flags ${CMAKE_CURRENT_LIST_DIR}/kernels/linear_panel_avx512vnni.cpp
    TARGET_DIRECTORY bitnet_cpu_kernels COMPILE_OPTIONS)
  set_source_files_properties(cpu/linear_panel_emulated.cpp PROPERTIES COMPILE_OPTIONS "${flags}"
    SKIP_UNITY_BUILD_INCLUSION ON)
endif()
bitnet_add_test(parity.cpu.kernels
  SOURCES cpu/attention_test.cpp cpu/faster_test.cpp cpu/fives_test.cpp cpu/isa_test.cpp cpu/kernel_ids_test.cpp
          cpu/kernels_test.cpp cpu/ops_test.cpp cpu/rows_test.cpp cpu/top_head_test.cpp cpu/tuning_test.cpp ${emulated}
  LINK bitnet_cpu_kernels bitnet_conformance_model LABELS parity COMPUTES)
# A hundred times as many states of the two-stage head. It takes minutes, so it runs only in its own
# configuration: scripts/test --lane states.
add_test(NAME parity.cpu.states CONFIGURATIONS states
  COMMAND test_parity_cpu_kernels --gtest_filter=*bound_holds*)
set_tests_properties(parity.cpu.states PROPERTIES LABELS states TIMEOUT 3600
  ENVIRONMENT BITNET_TOP_HEAD_STATES=1000000)
bitnet_add_test(parity.cpu.row_copies SOURCES cpu/row_copies_test.cpp LINK bitnet_cpu_kernels
  LABELS parity concurrent)
bitnet_add_test(parity.cpu.meter SOURCES cpu/meter_test.cpp LINK bitnet_cpu_kernels LABELS parity)
# The objects of kernels/<kernel>_<isa>.cpp, for each instruction set that bitnet_isa() was called for.
get_target_property(isas bitnet_cpu_kernels BITNET_ISAS)
list(JOIN isas "|" isas)
add_test(NAME parity.cpu.symbols COMMAND ${CMAKE_COMMAND} -E env
  ${CMAKE_CURRENT_SOURCE_DIR}/cpu/isa_symbols.sh ${CMAKE_NM}
  "$<FILTER:$<TARGET_OBJECTS:bitnet_cpu_kernels>,INCLUDE,_(${isas})[.][^/]*$>")
set_property(TEST parity.cpu.symbols PROPERTY LABELS parity)
set_property(TEST parity.cpu.symbols PROPERTY COMMAND_EXPAND_LISTS ON)

# The same on processors with fewer instructions: each form runs with the instructions that it declares,
# and the best form that is left is selected. A form that a smaller processor ran is not run again.
set(emulator ${CMAKE_CROSSCOMPILING_EMULATOR})
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64" AND emulator)
  set(processors "cortex-a53 neon" "cortex-a76 neon-dotprod")
  set_property(TEST parity.cpu.kernels APPEND PROPERTY
    ENVIRONMENT "QEMU_CPU=max;BITNET_EXPECTED_ISA=neon-i8mm")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(processors "Conroe scalar" "Nehalem sse41" "Haswell avx2")
  find_program(BITNET_QEMU_X86 qemu-x86_64)
  if(BITNET_QEMU_X86)
    set(emulator ${BITNET_QEMU_X86})
  endif()
endif()
if(emulator AND NOT BITNET_SANITIZE) # the emulator lacks the memory for them
  set(others "-") # a filter of tests
  foreach(row IN LISTS processors)
    string(REGEX MATCH "^([^ ]+) (.+)$" row ${row})
    set(name parity.cpu.on.${CMAKE_MATCH_1})
    set(form ${CMAKE_MATCH_2})
    add_test(NAME ${name}
      COMMAND ${emulator} $<TARGET_FILE:test_parity_cpu_kernels> --gtest_filter=${others})
    set_tests_properties(${name} PROPERTIES LABELS parity TIMEOUT ${BITNET_TEST_SECONDS}
      ENVIRONMENT "QEMU_CPU=${CMAKE_MATCH_1};BITNET_EXPECTED_ISA=${form};BITNET_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
    string(REPLACE "-" "_" form ${form})
    string(APPEND others "*/scalar:*/${form}:") # the scalar form ran already
  endforeach()
  if(CMAKE_CROSSCOMPILING)
    set_property(TEST parity.cpu.kernels APPEND PROPERTY ENVIRONMENT "GTEST_FILTER=${others}")
  endif()
endif()
