# Tests of this backend in addition to the suites of every backend (cmake/BitnetBackend.cmake) and tests/rocm,
# which builds the runtime that they use. The second device has waves of 64 lanes.
if(BITNET_ROCM_STAND_IN)
  foreach(subject IN ITEMS program hostile abi_ops)
    add_dependencies(test_parity_rocm_${subject} bitnet_rocm_stand_in)
  endforeach()
  foreach(subject IN ITEMS program abi_ops)
    add_test(NAME parity.rocm.${subject}.waves64 COMMAND test_parity_rocm_${subject})
    get_property(environment TEST parity.rocm.${subject} PROPERTY ENVIRONMENT)
    set_tests_properties(parity.rocm.${subject}.waves64 PROPERTIES LABELS "parity;rocm"
      TIMEOUT ${BITNET_TEST_SECONDS} SKIP_RETURN_CODE 77
      ENVIRONMENT "${environment};BITNET_STAND_IN=targets=gfx90a:sramecc+:xnack-")
  endforeach()
  set_property(TEST parity.rocm.program.waves64 APPEND PROPERTY LABELS unsanitized)
endif()
if(NOT BITNET_SANITIZE AND NOT BITNET_COVERAGE)
  bitnet_add_program_test(rocm ${BITNET_rocm_PINNED})
endif()
