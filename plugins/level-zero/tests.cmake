# What is tested of this backend beside the suites that every backend runs (cmake/BitnetBackend.cmake) and
# tests/level-zero. The driver that these open is made by the latter.
if(BITNET_LEVEL_ZERO_STAND_IN)
  foreach(subject IN ITEMS program hostile abi_ops)
    add_dependencies(test_parity_level-zero_${subject} bitnet_level_zero_stand_in)
  endforeach()
endif()
if(NOT BITNET_SANITIZE AND NOT BITNET_COVERAGE)
  bitnet_add_program_test(level-zero ${BITNET_level-zero_PINNED})
endif()
