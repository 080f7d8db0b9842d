#pragma once
// Whole models of two layers, small enough to be cut at every byte.

#include <string>
#include <utility>
#include <vector>

#include "../gguf/gguf_builder.hpp"

namespace bitnet::tests {

inline constexpr uint32_t n_embd = 128, n_ff = 256, n_heads = 2, n_kv_heads = 1, n_layers = 2,
                          n_vocab = 300;

// 256 byte tokens and some words: complete for gpt2 and for llama vocabularies.
inline void add_tokenizer(gguf_builder& b, const std::string& kind) {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
  const auto add = [&](std::string text, int32_t type) {
    tokens.push_back(std::move(text));
    scores.push_back(-static_cast<float>(tokens.size()));
    types.push_back(type);
  };
  const auto utf8 = [](uint32_t point) {
    return point < 0x80 ? std::string(1, static_cast<char>(point))
                        : std::string{static_cast<char>(0xc0 | point >> 6),
                                      static_cast<char>(0x80 | (point & 0x3f))};
  };
  if (kind == "gpt2") {  // each byte under the printable character that stands for it
    uint32_t spare = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable =
          (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      add(utf8(printable ? byte : spare++), 1);
    }
  } else {
    add("<unk>", 2);
    add("<s>", 3);
    add("</s>", 3);
    const std::string digits = "0123456789ABCDEF";
    for (uint32_t byte = 0; byte < 256; ++byte)
      add(std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">", 6);
  }
  while (tokens.size() < n_vocab) add("word" + std::to_string(tokens.size()), 1);
  b.text("tokenizer.ggml.model", kind).texts("tokenizer.ggml.tokens", tokens);
  b.numbers<int32_t>("tokenizer.ggml.token_type", 5, types);
  if (kind == "gpt2") {
    b.text("tokenizer.ggml.pre", "llama-bpe").texts("tokenizer.ggml.merges", {"w o", "r d"});
  } else {
    b.numbers<float>("tokenizer.ggml.scores", 6, scores);
  }
  b.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
}

inline bytes i2s_data(uint64_t k, uint64_t m, float scale) {
  bytes out(k * m / 4, std::byte{0x55});
  for (size_t i = 0; i < out.size(); i += 3) out[i] = std::byte{0x92};
  put(out, scale);
  out.resize(out.size() + 28);
  return out;
}

inline bytes f32_data(uint64_t n, float value) {
  bytes out;
  for (uint64_t i = 0; i < n; ++i) put(out, value);
  return out;
}

inline void add_norm(gguf_builder& b, const std::string& name, uint64_t n) {
  b.add(name, {n}, 0, f32_data(n, 1.0F));
}

inline void add_hyperparameters(gguf_builder& b, const std::string& arch,
                                uint32_t layers = n_layers) {
  b.text("general.architecture", arch).text("general.name", "small");
  b.u32(arch + ".context_length", 64).u32(arch + ".embedding_length", n_embd);
  b.u32(arch + ".block_count", layers).u32(arch + ".feed_forward_length", n_ff);
  b.u32(arch + ".attention.head_count", n_heads).u32(arch + ".attention.head_count_kv", n_kv_heads);
  b.f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5F);
  if (arch == "minicpm")
    for (const auto& [key, value] :
         {std::pair{"embedding_scale", 12.0F}, {"residual_scale", 0.25F}, {"logit_scale", 4.0F}})
      b.f32(arch + "." + key, value);
}

// Halves from 0.5 to 2 of either sign, no two rows alike: what reads them is not zero.
inline bytes lively_embedding() {
  bytes out;
  for (uint32_t i = 0; i < n_embd * n_vocab; ++i) {
    const uint32_t mixed = (i + 1) * 2654435761U;
    put(out, static_cast<uint16_t>((mixed >> 16 & 0x8000) | 0x3800 | (mixed >> 8 & 0x7ff)));
  }
  return out;
}

// Ternary, tied, F16 embedding: zeros unless given.
inline gguf_builder small_model(const std::string& arch, const std::string& vocabulary = "gpt2",
                                uint32_t layers = n_layers,
                                bytes embedding = bytes(uint64_t{2} * n_embd * n_vocab)) {
  gguf_builder b;
  add_hyperparameters(b, arch, layers);
  add_tokenizer(b, vocabulary);
  b.add("token_embd.weight", {n_embd, n_vocab}, 1, std::move(embedding));
  const uint64_t kv = n_embd / n_heads * n_kv_heads;
  const auto linear = [&](const std::string& name, uint64_t k, uint64_t m) {
    b.add(name + ".weight", {k, m}, 36, i2s_data(k, m, 0.5F));
  };
  for (uint32_t n = 0; n < layers; ++n) {
    const std::string blk = "blk." + std::to_string(n) + ".";
    add_norm(b, blk + "attn_norm.weight", n_embd);
    linear(blk + "attn_q", n_embd, n_embd);
    linear(blk + "attn_k", n_embd, kv);
    linear(blk + "attn_v", n_embd, kv);
    linear(blk + "attn_output", n_embd, n_embd);
    add_norm(b, blk + "ffn_norm.weight", n_embd);
    linear(blk + "ffn_gate", n_embd, n_ff);
    linear(blk + "ffn_up", n_embd, n_ff);
    linear(blk + "ffn_down", n_ff, n_embd);
    if (arch == "qwen3" || arch == "gemma3") {
      add_norm(b, blk + "attn_q_norm.weight", n_embd / n_heads);
      add_norm(b, blk + "attn_k_norm.weight", n_embd / n_heads);
      if (arch == "gemma3") {
        add_norm(b, blk + "post_attention_norm.weight", n_embd);
        add_norm(b, blk + "post_ffw_norm.weight", n_embd);
      }
    } else if (arch != "llama" && arch != "minicpm") {
      add_norm(b, blk + "attn_sub_norm.weight", n_embd);
      add_norm(b, blk + "ffn_sub_norm.weight", n_ff);
    }
  }
  add_norm(b, "output_norm.weight", n_embd);
  return b;
}

// As the files of BitNet's embedding models: a qwen3 or gemma3 with F16 norms of what each matrix
// reads, and no window.
inline gguf_builder small_embedder(const std::string& arch) {
  gguf_builder b = small_model(arch, arch == "gemma3" ? "llama" : "gpt2");
  for (const char* block : {"blk.0.", "blk.1."})
    for (const std::string matrix :
         {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
      const uint64_t width = matrix == "ffn_down" ? n_ff : n_embd;
      b.add(block + matrix + "_norm_in.weight", {width}, 1, bytes(2 * width));
    }
  return b;
}

}  // namespace bitnet::tests
