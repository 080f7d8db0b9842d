bitnet_label(session core.kv.eviction core.kv.kv_blocks)
