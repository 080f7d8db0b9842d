# The driver that these open is made by tests/cuda.
if(BITNET_CUDA_STAND_IN)
  foreach(subject IN ITEMS program hostile abi_ops)
    add_dependencies(test_parity_cuda_${subject} bitnet_cuda_stand_in)
  endforeach()
endif()
