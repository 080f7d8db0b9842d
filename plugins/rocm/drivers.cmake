# The runtime for this backend's tests, even on machines with a GPU. tests/rocm builds it for this machine. It
# switches stacks, which ThreadSanitizer does not follow.
if(BITNET_CORE AND NOT CMAKE_CROSSCOMPILING AND NOT BITNET_SANITIZE STREQUAL "thread")
  set(BITNET_ROCM_STAND_IN ${PROJECT_BINARY_DIR}/tests/rocm/stand-in)
  set(BITNET_rocm_PINNED LD_LIBRARY_PATH=${BITNET_ROCM_STAND_IN})
  # As in plugins/cuda/drivers.cmake; rocm.forms and all runs of whole models include the computation at each start.
  set(BITNET_rocm_SETTINGS checks=off)
  if(BITNET_SANITIZE) # otherwise it keeps a second stack for each thread of a group
    list(APPEND BITNET_rocm_PINNED ASAN_OPTIONS=detect_stack_use_after_return=0)
  endif()
endif()
