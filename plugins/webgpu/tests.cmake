# Tests of the program with wgpu-native and a software driver. All other tests of this backend are
# in tests/webgpu, or in the suites of every backend (cmake/BitnetBackend.cmake).
if(NOT BITNET_SANITIZE AND NOT BITNET_COVERAGE)
  bitnet_add_program_test(webgpu ${BITNET_webgpu_PINNED})
endif()
