"""A model of transformers as a GGUF file of F32, written by the public gguf package alone: its names of tensors and
keys, its writer. What values change on the way is written here once more, from docs/reference/models.md.
"""

import gguf
import numpy as np

ARCHITECTURES = {"qwen3": "QWEN3", "llama": "LLAMA", "gemma3_text": "GEMMA3", "qwen3_5_text": "QWEN35"}


def neighbours(w, heads):
    """Rows of llama's queries and keys: halves of a head beside each other."""
    return w.reshape(heads, 2, -1, w.shape[-1]).swapaxes(1, 2).reshape(w.shape)


def heads_in_turn(w, keys, values, first=0):
    """Rows of value heads, from row `first` on: from those of a key head together to the first of each."""
    rest = w[first:]
    turned = rest.reshape(keys, values // keys, -1, *rest.shape[1:]).swapaxes(0, 1).reshape(rest.shape)
    return np.concatenate([w[:first], turned])


def state_tensor(name, w, config):
    """What stands in a layer with a state: name as the package knows it, and values."""
    keys, values = config.linear_num_key_heads, config.linear_num_value_heads
    behind_keys = 2 * keys * config.linear_key_head_dim
    if name.endswith("norm.weight"):
        return name, w
    if "in_proj_qkv" in name:
        return name, heads_in_turn(w, keys, values, behind_keys)
    if "conv1d" in name:
        return name, heads_in_turn(w[:, 0], keys, values, behind_keys)
    if "out_proj" in name:
        return name, heads_in_turn(w.T, keys, values).T
    if name.endswith("A_log"):
        return name, -np.exp(heads_in_turn(w, keys, values).astype(np.float64))  # rounded once
    return name.replace("dt_bias", "dt_proj.bias"), heads_in_turn(w, keys, values)


def converted(name, w, config):
    kind = config.model_type
    if "linear_attn" in name:
        return state_tensor(name, w, config)
    if "norm" in name and kind in ("gemma3_text", "qwen3_5_text"):
        return name, 1 + w
    if kind == "llama" and ("q_proj" in name or "k_proj" in name):
        return name, neighbours(w, config.num_attention_heads if "q_proj" in name else config.num_key_value_heads)
    return name, w


def add_keys(writer, config, head_dim):
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    if config.model_type == "gemma3_text":
        writer.add_sliding_window(config.sliding_window)
        pattern = [kind == "sliding_attention" for kind in config.layer_types]
        writer.add_array(f"{writer.arch}.attention.sliding_window_pattern", pattern)
        writer.add_float32(f"{writer.arch}.rope.freq_base_swa", rope["sliding_attention"]["rope_theta"])
        if config.query_pre_attn_scalar != head_dim:
            writer.add_float32(f"{writer.arch}.attention.scale", config.query_pre_attn_scalar**-0.5)
        rope = rope["full_attention"]
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] != "default":
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if "original_max_position_embeddings" in rope:
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if config.model_type == "qwen3_5_text":
        writer.add_rope_dimension_count(int(head_dim * rope["partial_rotary_factor"]))
        writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
        writer.add_ssm_state_size(config.linear_key_head_dim)
        writer.add_ssm_group_count(config.linear_num_key_heads)
        writer.add_ssm_time_step_rank(config.linear_num_value_heads)
        writer.add_ssm_inner_size(config.linear_num_value_heads * config.linear_value_head_dim)
        writer.add_uint32(f"{writer.arch}.full_attention_interval", config.layer_types.index("full_attention") + 1)


def add_vocabulary(writer, vocab):
    writer.add_tokenizer_model(vocab["tokenizer.ggml.model"])
    writer.add_tokenizer_pre(vocab["tokenizer.ggml.pre"])
    writer.add_token_list(vocab["tokenizer.ggml.tokens"])
    writer.add_token_types(vocab["tokenizer.ggml.token_type"])
    writer.add_token_merges(vocab["tokenizer.ggml.merges"])
    writer.add_bos_token_id(vocab["tokenizer.ggml.bos_token_id"])
    writer.add_eos_token_id(vocab["tokenizer.ggml.eos_token_id"])


def write(path, config, state, vocab):
    """`state`: {name: array of float32}. The embedding and the head as F16, which holds those of this test."""
    arch = getattr(gguf.MODEL_ARCH, ARCHITECTURES[config.model_type])
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[arch])
    add_keys(writer, config, getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
    add_vocabulary(writer, vocab)
    for theirs, w in state.items():
        theirs, w = converted(theirs, w, config)
        name = names.get_name(theirs, try_suffixes=(".weight", ".bias"))
        if name is None:
            raise SystemExit(f"the gguf package knows no tensor {theirs}")
        wide = name in ("token_embd.weight", "output.weight")
        writer.add_tensor(name, np.ascontiguousarray(w, np.float16 if wide else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
