# Tests of this backend in addition to the suites of every backend (cmake/BitnetBackend.cmake) and
# tests/level-zero, which builds the driver that they use.
if(BITNET_LEVEL_ZERO_STAND_IN)
  foreach(subject IN ITEMS program hostile abi_ops)
    add_dependencies(test_parity_level-zero_${subject} bitnet_level_zero_stand_in)
  endforeach()
endif()
if(NOT BITNET_SANITIZE AND NOT BITNET_COVERAGE)
  bitnet_add_program_test(level-zero ${BITNET_level-zero_PINNED})
endif()
