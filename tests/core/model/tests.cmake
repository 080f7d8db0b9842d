# The test compares docs/reference/model-folder-members.md with the table in the code.
target_compile_definitions(test_core_model_model_folders PRIVATE
  BITNET_TEST_DOCS="${PROJECT_SOURCE_DIR}/docs")
