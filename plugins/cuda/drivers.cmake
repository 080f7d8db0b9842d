# The driver for this backend's tests, even on machines with a GPU. tests/cuda builds it for this machine. It
# switches stacks, which ThreadSanitizer does not follow.
if(BITNET_CORE AND NOT CMAKE_CROSSCOMPILING AND NOT BITNET_SANITIZE STREQUAL "thread")
  set(BITNET_CUDA_STAND_IN ${PROJECT_BINARY_DIR}/tests/cuda/stand-in)
  set(BITNET_cuda_PINNED LD_LIBRARY_PATH=${BITNET_CUDA_STAND_IN})
  # The kit opens the device some five hundred times without a probe, and each time the backend would compare its
  # forms: milliseconds on a GPU, a quarter of a second here. cuda.platform and the probes of whole models compare them.
  set(BITNET_cuda_SETTINGS checks=off)
  if(BITNET_SANITIZE) # otherwise it keeps a second stack for each thread of a group
    list(APPEND BITNET_cuda_PINNED ASAN_OPTIONS=detect_stack_use_after_return=0)
  endif()
endif()
