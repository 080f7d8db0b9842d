# The program on wgpu-native and a driver in software. Whatever else is tested of this backend is in
# tests/webgpu, or in the suites that every backend runs (cmake/BitnetBackend.cmake).
if(TARGET bitnet-program AND NOT BITNET_SANITIZE AND NOT BITNET_COVERAGE)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  add_test(NAME cli.webgpu
    COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/cli_test.py)
  set_tests_properties(cli.webgpu PROPERTIES
    ENVIRONMENT "BITNET_PROGRAM=$<TARGET_FILE:bitnet-program>;BITNET_SOURCE_DIR=${PROJECT_SOURCE_DIR};PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/cli;${BITNET_webgpu_PINNED}"
    LABELS "cli" TIMEOUT ${BITNET_TEST_SECONDS} SKIP_RETURN_CODE 77)
endif()
