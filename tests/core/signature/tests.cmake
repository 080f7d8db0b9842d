# OpenSSF's tool made these signatures.
target_compile_definitions(test_core_signature_model_judge PRIVATE
  BITNET_GOLDEN_SIGNATURES="${CMAKE_CURRENT_LIST_DIR}/golden")
