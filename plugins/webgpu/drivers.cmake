# The library for this backend's tests: wgpu-native, which scripts/setup --for test installs with
# Python's package wgpu. It uses the software driver of the vulkan backend's tests.
file(GLOB found ${PROJECT_SOURCE_DIR}/build/venv/lib/python3*/site-packages/wgpu/resources)
find_file(BITNET_WGPU_NATIVE libwgpu_native-release.so PATHS ${found} NO_DEFAULT_PATH
  DOC "A library that exports webgpu.h, for tests of the webgpu backend")
find_file(BITNET_LAVAPIPE lvp_icd.${CMAKE_SYSTEM_PROCESSOR}.json
  PATHS /usr/share/vulkan/icd.d /etc/vulkan/icd.d NO_DEFAULT_PATH)
set(BITNET_webgpu_PINNED)
# Seconds for a test of the kit. The test of memory is unreliable: the driver sometimes hangs in it.
set(BITNET_webgpu_PATIENCE 200)
set(BITNET_webgpu_SETTINGS)
set(BITNET_webgpu_PARITY_ENVIRONMENT)
if(BITNET_WGPU_NATIVE)
  set(BITNET_webgpu_PINNED BITNET_WEBGPU_LIBRARY=${BITNET_WGPU_NATIVE})
  set(BITNET_webgpu_SETTINGS library=${BITNET_WGPU_NATIVE})
  set(BITNET_webgpu_PARITY_ENVIRONMENT BITNET_TEST_SETTING=library=${BITNET_WGPU_NATIVE}
    BITNET_TEST_ONE_KV=1)  # a text is compiled for each pair of types
endif()
# wgpu-native initialises Vulkan's window support, and a layer of Mesa then looks for a display. If
# this variable is not set, it prints a message.
list(APPEND BITNET_webgpu_PINNED XDG_RUNTIME_DIR=${PROJECT_BINARY_DIR})
if(BITNET_LAVAPIPE)
  list(APPEND BITNET_webgpu_PINNED VK_DRIVER_FILES=${BITNET_LAVAPIPE} VK_ICD_FILENAMES=${BITNET_LAVAPIPE})
endif()
