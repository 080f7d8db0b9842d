# The conformance kit tests the plugin for the level that upstream tests it for.
judge = bitnet-backend-conformance --level gold "$(plugin)"
