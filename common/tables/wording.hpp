#pragma once
// Table of the names of options and calls in messages, hints and log lines. Each has two names: the
// library's, as in bitnet.h, and the program's. The program sets its names (bitnet_wording_set)
// before it does anything else.
//
// X(id, the library's words, the program's)
// clang-format off: the rows' own lines.
#define BITNET_WORDING(X) \
  X(allow_fake, "allow_fake", "--allow-fake") \
  X(allow_fallback, "allow_fallback", "--allow-fallback") \
  X(allowed_backends, "allowed_backends", "--allow-backends") \
  X(ask_again, "ask it again with probe_fresh", \
    "ask it again with `bitnet backends probe --all --fresh`") \
  X(choose_pooling, "choose one of them as pooling", "choose one of them with --pooling") \
  X(convert, "bitnet_convert", "`bitnet quantize`") \
  X(i2s_layout, "i2s_layout", "--i2s-layout") \
  X(i2s_layout_qk256, "i2s_layout QK256", "--i2s-layout qk256") \
  X(kv_budget, "kv_budget_bytes", "--kv-budget") \
  X(kv_k, "kv_k", "--cache-type-k") \
  X(kv_v, "kv_v", "--cache-type-v") \
  X(leave_window, "leave window 0", "leave --sliding-window out") \
  X(n_batch, "n_batch", "--batch-size") \
  X(n_context, "n_context", "--ctx-size") \
  X(n_gpu_layers, "n_gpu_layers", "--n-gpu-layers") \
  X(n_threads, "n_threads", "--threads") \
  X(name_template, "name a template", "use --chat-template") \
  X(probe_all, "probe all backends", "run `bitnet backends`") \
  X(request_another, "request another device", "choose another with --device") \
  X(request_it, "request it as the device", "ask for it with --device") \
  X(request_device, "request the device", "use --device") \
  X(set_overwrite, "set overwrite", "give --force") \
  X(set_window, "set window", "give --sliding-window") \
  X(sign_again, "sign the file again", "sign the file again with `bitnet backends sign`") \
  X(sign_file, "sign the file", "sign the file with `bitnet backends sign`") \
  X(signature, "signature", "--model-signature") \
  X(signature_ca, "signature_ca", "--model-ca") \
  X(signature_key, "signature_key", "--model-key") \
  X(split_mode, "split_mode", "--split-mode") \
  X(tensor_split, "tensor_split", "--tensor-split") \
  X(tl1_tiles, "tl1_tiles", "--tl1-tiles") \
  X(trusted_keys, "trusted_keys", "--trusted-keys") \
  X(user_backends, "user_backends", "--user-backends") \
  X(wait_for_probe, "wait for its probe to end", \
    "wait for it, as `bitnet backends probe --all` does") \
  X(window_keep, "window_keep", "--keep")
// clang-format on
