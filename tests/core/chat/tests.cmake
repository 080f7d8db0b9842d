# Templates that the project wrote; the grammar test compiles the grammars of dialects.
target_compile_definitions(test_core_chat_prompt PRIVATE
  BITNET_TEST_PATTERNS="${PROJECT_SOURCE_DIR}/tests/jinja/patterns")
target_link_libraries(test_core_chat_grammar PRIVATE bitnet_core_grammar)
