# The driver that tests of this backend run on, also where there is a GPU: tests/cuda makes it, for this
# machine. It switches stacks, which ThreadSanitizer does not follow.
if(BITNET_CORE AND NOT CMAKE_CROSSCOMPILING AND NOT BITNET_SANITIZE STREQUAL "thread")
  set(BITNET_CUDA_STAND_IN ${PROJECT_BINARY_DIR}/tests/cuda/stand-in)
  set(BITNET_cuda_PINNED LD_LIBRARY_PATH=${BITNET_CUDA_STAND_IN})
  # The kit opens the device some five hundred times. What is computed then takes milliseconds of a GPU and
  # a quarter of a second here; cuda.platform and all runs of whole models have it.
  set(BITNET_cuda_SETTINGS checks=off)
  if(BITNET_SANITIZE) # which otherwise keeps a second stack for each thread of a group
    list(APPEND BITNET_cuda_PINNED ASAN_OPTIONS=detect_stack_use_after_return=0)
  endif()
endif()
