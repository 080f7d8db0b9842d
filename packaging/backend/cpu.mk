# Of the cpu backend: the kit judges what was built, by the level that it is tested for upstream.
judge = bitnet-backend-conformance --level gold "$(plugin)"
