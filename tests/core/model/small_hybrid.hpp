#pragma once
// A qwen35 model of four layers, of which each second one attends and the others keep a state, with
// random weights, so that its next token depends on all tokens before.

#include <algorithm>
#include <random>
#include <string>

#include "small_model.hpp"

namespace bitnet::tests {

inline gguf_builder small_hybrid(const std::string& vocabulary = "gpt2", uint32_t ahead = 0) {
  constexpr uint32_t layers = 4, head_dim = 32, taps = 4;
  constexpr uint32_t key_heads = 2, value_heads = 4, state = 16, inner = value_heads * 24;
  constexpr uint32_t channels = 2 * key_heads * state + inner;
  gguf_builder b;
  std::mt19937 random(5);
  const auto floats = [&](uint64_t n, float low, float high) {
    bytes out;
    for (uint64_t i = 0; i < n; ++i)
      put(out, low + (high - low) * static_cast<float>(random() % 4096) / 4096);
    return out;
  };
  const auto matrix = [&](const std::string& name, uint64_t k, uint64_t m) {
    b.add(name + ".weight", {k, m}, 0, floats(k * m, -0.2F, 0.2F));
  };
  const auto vector = [&](const std::string& name, uint64_t n, float low, float high) {
    b.add(name, {n}, 0, floats(n, low, high));
  };
  add_hyperparameters(b, "qwen35", layers + ahead);
  b.u32("qwen35.context_length", 512);
  b.u32("qwen35.attention.key_length", head_dim).u32("qwen35.attention.value_length", head_dim);
  b.u32("qwen35.rope.dimension_count", 8).f32("qwen35.rope.freq_base", 1e6F);
  b.u32("qwen35.full_attention_interval", 2).u32("qwen35.ssm.conv_kernel", taps);
  b.u32("qwen35.ssm.state_size", state).u32("qwen35.ssm.group_count", key_heads);
  b.u32("qwen35.ssm.time_step_rank", value_heads).u32("qwen35.ssm.inner_size", inner);
  if (ahead != 0) b.u32("qwen35.nextn_predict_layers", ahead);
  add_tokenizer(b, vocabulary);
  matrix("token_embd", n_embd, n_vocab);
  for (uint32_t n = 0; n < layers + ahead; ++n) {
    const std::string blk = "blk." + std::to_string(n) + ".";
    for (const char* norm : {"attn_norm", "post_attention_norm"})
      vector(blk + norm + ".weight", n_embd, 0.5F, 1.5F);
    if (n % 2 == 1) {
      matrix(blk + "attn_q", n_embd, uint64_t{2} * n_heads * head_dim);
      matrix(blk + "attn_k", n_embd, uint64_t{n_kv_heads} * head_dim);
      matrix(blk + "attn_v", n_embd, uint64_t{n_kv_heads} * head_dim);
      matrix(blk + "attn_output", uint64_t{n_heads} * head_dim, n_embd);
      for (const char* norm : {"attn_q_norm", "attn_k_norm"})
        vector(blk + norm + ".weight", head_dim, 0.5F, 1.5F);
    } else {
      matrix(blk + "attn_qkv", n_embd, channels);
      matrix(blk + "attn_gate", n_embd, inner);
      matrix(blk + "ssm_alpha", n_embd, value_heads);
      matrix(blk + "ssm_beta", n_embd, value_heads);
      b.add(blk + "ssm_conv1d.weight", {taps, channels}, 0,
            floats(uint64_t{taps} * channels, -1, 1));
      vector(blk + "ssm_a", value_heads, -0.5F, -0.01F);
      vector(blk + "ssm_dt.bias", value_heads, -1, 1);
      vector(blk + "ssm_norm.weight", inner / value_heads, 0.5F, 1.5F);
      matrix(blk + "ssm_out", inner, n_embd);
    }
    matrix(blk + "ffn_gate", n_embd, n_ff);
    matrix(blk + "ffn_up", n_embd, n_ff);
    matrix(blk + "ffn_down", n_ff, n_embd);
  }
  vector("output_norm.weight", n_embd, 0.5F, 1.5F);
  for (uint32_t n = 0; n < ahead; ++n)
    matrix("blk." + std::to_string(layers + n) + ".nextn.eh_proj", uint64_t{2} * n_embd, n_embd);
  return b;
}

inline std::string as_text(const bytes& file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

}  // namespace bitnet::tests
