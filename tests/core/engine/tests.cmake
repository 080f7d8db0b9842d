bitnet_label(session core.engine.kv_store core.engine.limits core.engine.pack_cache)
