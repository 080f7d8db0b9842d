# tests/cuda builds the driver that these tests open.
if(BITNET_CUDA_STAND_IN)
  foreach(subject IN ITEMS program hostile abi_ops)
    add_dependencies(test_parity_cuda_${subject} bitnet_cuda_stand_in)
  endforeach()
endif()

bitnet_add_test(parity.cuda.head SOURCES cuda/head_test.cpp
  LINK bitnet::sdk bitnet_conformance_model Threads::Threads ${CMAKE_DL_LIBS} LABELS parity cuda)
target_compile_definitions(test_parity_cuda_head PRIVATE BITNET_GPU_PLUGIN="$<TARGET_FILE:bitnet-backend-cuda>")
target_include_directories(test_parity_cuda_head PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_include_directories(test_parity_cuda_head SYSTEM PRIVATE ${BITNET_CUDA_HEADERS})
add_dependencies(test_parity_cuda_head bitnet-backend-cuda) # opened, not linked
if(BITNET_CUDA_STAND_IN)
  add_dependencies(test_parity_cuda_head bitnet_cuda_stand_in)
endif()
set_property(TEST parity.cuda.head APPEND PROPERTY
  ENVIRONMENT ${BITNET_cuda_PINNED} BITNET_STAND_IN=at_once=1)

if(BITNET_NVTX_HEADERS AND BITNET_CUDA_STAND_IN)
  bitnet_add_test(parity.cuda.ranges SOURCES cuda/ranges_test.cpp
    LINK bitnet::sdk bitnet_conformance_model Threads::Threads ${CMAKE_DL_LIBS} LABELS parity cuda)
  target_compile_definitions(test_parity_cuda_ranges PRIVATE
    BITNET_GPU_PLUGIN="$<TARGET_FILE:bitnet-backend-cuda>"
    BITNET_PROFILER="$<TARGET_FILE:bitnet_cuda_profiler>")
  add_dependencies(test_parity_cuda_ranges bitnet-backend-cuda bitnet_cuda_stand_in bitnet_cuda_profiler)
  set_property(TEST parity.cuda.ranges APPEND PROPERTY ENVIRONMENT ${BITNET_cuda_PINNED})
endif()
