# The program on wgpu-native and a driver in software. Whatever else is tested of this backend is in
# tests/webgpu, or in the suites that every backend runs (cmake/BitnetBackend.cmake).
if(NOT BITNET_SANITIZE AND NOT BITNET_COVERAGE)
  bitnet_add_program_test(webgpu ${BITNET_webgpu_PINNED})
endif()
