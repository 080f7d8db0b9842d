# Tests that select backends have them probed by the helper of the build tree.
foreach(subject IN ITEMS rejection selection coexistence probing asking renewal)
  add_dependencies(test_core_select_${subject} bitnet-backend-probe)
  target_compile_definitions(test_core_select_${subject} PRIVATE BITNET_TEST_PROBE_HELPER="${BITNET_PROBE_HELPER}")
endforeach()

# The names that a message lists.
file(GLOB packages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/packaging/backend
  ${PROJECT_SOURCE_DIR}/packaging/backend/*.control)
list(TRANSFORM packages REPLACE "[.]control$" "")
list(JOIN packages ", " packages)
target_compile_definitions(test_core_select_selection PRIVATE "BITNET_TEST_PACKAGES=\"${packages}\"")

bitnet_label(core-small core.select.selection)
# These backends join late, or are renewed, while the caller's threads run.
bitnet_label(concurrent core.select.probing core.select.renewal)
