// From files in memory to shapes and weights: the rules of
// docs/reference/models.md and docs/reference/gguf.md#rules.
#include "model/read.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>

#include "../../scratch_folder.hpp"
#include "bitnet/bitnet.h"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"
#include "small_hybrid.hpp"
#include "small_model.hpp"

namespace bitnet::model {
namespace {

using tests::add_norm;
using tests::bytes;
using tests::gguf_builder;
using tests::small_embedder;
using tests::small_hybrid;
using tests::small_model;

// A file in memory that starts at a multiple of 32, as a mapped one does.
class image {
 public:
  explicit image(const bytes& content) : room_(content.size() + 32) {
    auto at = reinterpret_cast<uintptr_t>(room_.data());
    at = (at + 31) / 32 * 32;
    start_ = room_.data() + (at - reinterpret_cast<uintptr_t>(room_.data()));
    std::copy(content.begin(), content.end(), start_);
    size_ = content.size();
  }
  [[nodiscard]] result<loaded> load(const load_options& options = {}) const {
    auto file = gguf::file::view({start_, size_});
    if (!file) return std::unexpected(file.error());
    return read(std::move(*file), options);
  }

 private:
  bytes room_;
  std::byte* start_;
  size_t size_;
};

bytes streamed(const loaded& m, uint32_t index) {
  bytes out;
  const auto ok =
      stream(m, index, [&](uint64_t offset, std::span<const std::byte> piece) -> result<void> {
        EXPECT_EQ(offset, out.size());
        EXPECT_LE(piece.size(), size_t{4} << 20);
        out.insert(out.end(), piece.begin(), piece.end());
        return {};
      });
  EXPECT_TRUE(ok) << ok.error().message;
  return out;
}

TEST(model_read, follows_the_rules_of_each_architecture) {
  struct row {
    const char* arch;
    const char* vocabulary;
    activation gate;
    bool bitnet;
  };
  const row rows[] = {
      {"bitnet", "llama", activation::silu, true},
      {"bitnet", "gpt2", activation::silu, true},
      {"bitnet-25", "gpt2", activation::relu2, true},
      {"bitnet25", "llama", activation::relu2, true},
      {"bitnet-b1.58", "gpt2", activation::relu2, true},
      {"bitnet-b1.58", "llama", activation::silu, true},
      {"bitnet-b158", "gpt2", activation::relu2, true},
      {"BitNet-b1.58", "gpt2", activation::relu2, true},
      {"bitnet_b1_58", "gpt2", activation::relu2, true},
      {"llama", "gpt2", activation::silu, false},
      {"llama", "llama", activation::silu, false},
      {"minicpm", "llama", activation::silu, false},
  };
  for (const row& r : rows) {
    const image file(small_model(r.arch, r.vocabulary).build());
    const auto m = file.load();
    ASSERT_TRUE(m) << r.arch << ": " << m.error().message;
    EXPECT_EQ(m->shape.gate, r.gate) << r.arch << " " << r.vocabulary;
    EXPECT_EQ(m->shape.sub_norms, r.bitnet) << r.arch;
    EXPECT_EQ(m->shape.rope_neox, r.bitnet) << r.arch;
    EXPECT_EQ(m->layers[1].attn_sub_norm != no_weight, r.bitnet) << r.arch;
    EXPECT_EQ(m->output, m->token_embedding) << "tied";
    EXPECT_EQ(m->shape.architecture, r.arch);
    const auto other = r.gate == activation::silu ? activation::relu2 : activation::silu;
    EXPECT_EQ(file.load({.gate = other})->shape.gate, other) << "the option wins";
  }
}

struct rejected {
  const char* why;
  std::function<void(gguf_builder&)> change;
  const char* says;
  bitnet_status status = BITNET_BAD_DATA;
};

// That `of`, changed as the row says, is rejected in its words.
void expect_rejected(const rejected& row, gguf_builder of) {
  row.change(of);
  const image file(of.build());
  const auto m = file.load();
  ASSERT_FALSE(m) << row.why;
  EXPECT_EQ(m.error().status, row.status) << row.why << ": " << m.error().message;
  EXPECT_NE(m.error().message.find(row.says), std::string::npos)
      << row.why << ": " << m.error().message;
}

TEST(model_read, qwen3_has_norms_of_heads) {
  gguf_builder b = small_model("qwen3");
  const image file(b.build());
  const auto m = file.load();
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_TRUE(m->shape.head_norms);
  EXPECT_TRUE(m->shape.rope_neox);
  EXPECT_FALSE(m->shape.sub_norms);
  EXPECT_EQ(m->shape.gate, activation::silu);
  EXPECT_EQ(m->layers[1].attn_sub_norm, no_weight);
  ASSERT_NE(m->layers[1].attn_q_norm, no_weight);
  EXPECT_EQ(m->weights[m->layers[1].attn_k_norm].ne[0], int64_t{m->shape.head_dim});
  EXPECT_EQ(m->shape.activation_group, 0U) << "one scale for each matrix: trained on int8";
  EXPECT_EQ(file.load({.gate = {}, .activations = activations::group64})->shape.activation_group,
            64U);
}

TEST(model_read, minicpm_has_scales) {
  const image file(small_model("minicpm").build());
  const auto m = file.load();
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->shape.embedding_scale, 12.0F);
  EXPECT_EQ(m->shape.own, (std::array{0.25F, 0.25F, 0.0F, 0.0F})) << "of parts, and of the head";
  EXPECT_FALSE(m->shape.rope_neox || m->shape.head_norms || m->shape.trained_on_i8);
  const rejected rows[] = {
      {"no scale of the embedding", [](auto& b) { b.erase("minicpm.embedding_scale"); },
       "embedding_scale' is missing"},
      {"no scale of parts", [](auto& b) { b.erase("minicpm.residual_scale"); },
       "residual_scale' is missing"},
      {"nothing to divide by", [](auto& b) { b.f32("minicpm.logit_scale", 0); },
       "logit_scale' is not a finite number above zero"},
      {"a divisor without an inverse", [](auto& b) { b.f32("minicpm.logit_scale", 1e-40F); },
       "logit_scale' is so small that its inverse overflows"},
      {"another scale", [](auto& b) { b.f32("minicpm.attention.scale", 0.5F); },
       "attention.scale' asks for something", BITNET_UNSUPPORTED},
  };
  for (const rejected& row : rows) expect_rejected(row, small_model("minicpm"));
  gguf_builder elsewhere = small_model("llama");
  elsewhere.f32("llama.residual_scale", 0.5F);
  const image scales_elsewhere(elsewhere.build());
  EXPECT_FALSE(scales_elsewhere.load()) << "no other architecture scales what it adds";
}

gguf_builder small_gemma(uint32_t layers = tests::n_layers) {
  gguf_builder b = small_model("gemma3", "llama", layers);
  b.u32("gemma3.attention.sliding_window", 5);
  return b;
}

TEST(model_read, gemma3_has_windows_and_norms_behind_each_part) {
  gguf_builder b = small_gemma(7);
  b.f32("gemma3.rope.freq_base", 1e6F).text("gemma3.rope.scaling.type", "linear");
  b.f32("gemma3.rope.scaling.factor", 8);
  const image file(b.build());
  const auto m = file.load();
  ASSERT_TRUE(m) << m.error().message;
  const hyperparameters& h = m->shape;
  EXPECT_EQ(h.gate, activation::gelu);
  EXPECT_TRUE(h.head_norms && h.post_norms && h.rope_neox);
  EXPECT_FALSE(h.sub_norms || h.trained_on_i8);
  EXPECT_EQ(h.window, 5U);
  EXPECT_EQ(h.windowed, (std::vector<bool>{true, true, true, true, true, false, true}));
  EXPECT_EQ(h.embedding_scale, std::sqrt(128.0F));
  EXPECT_EQ(h.attention_divisor, 8.0F) << "the root of a head's 64";
  EXPECT_EQ(h.rope_base, 1e6F);
  EXPECT_EQ(h.rope_scale, 0.125F);
  EXPECT_EQ(h.local_rope_base, 10000.0F);
  ASSERT_NE(m->layers[6].post_attention_norm, no_weight);
  EXPECT_EQ(m->weights[m->layers[6].post_ffw_norm].name, "blk.6.post_ffw_norm.weight");
}

TEST(model_read, gemma3_reads_what_its_own_keys_say) {
  const auto of = [](const gguf_builder& b) {
    const image file(b.build());
    auto m = file.load();
    EXPECT_TRUE(m) << m.error().message;
    return m ? m->shape : hyperparameters{};
  };
  gguf_builder b = small_gemma(4);
  b.u32("gemma3.attention.sliding_window_pattern", 2).f32("gemma3.rope.freq_base_swa", 5000);
  b.f32("gemma3.attention.scale", 0.25F);
  hyperparameters h = of(b);
  EXPECT_EQ(h.windowed, (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(h.local_rope_base, 5000.0F);
  EXPECT_EQ(h.attention_divisor, 4.0F);
  h = of(small_gemma().numbers<uint8_t>("gemma3.attention.sliding_window_pattern", 7, {0, 1}));
  EXPECT_EQ(h.windowed, (std::vector<bool>{false, true}));
  h = of(small_gemma().numbers<int32_t>("gemma3.attention.sliding_window_pattern", 5, {1, 0}));
  EXPECT_EQ(h.windowed, (std::vector<bool>{true, false}));
  h = of(small_gemma().u32("gemma3.attention.sliding_window_pattern", 1));
  EXPECT_EQ(h.windowed, (std::vector<bool>{false, false}));
  // The one model of 62 layers.
  b = small_gemma(62);
  b.u32("gemma3.attention.key_length", 32);
  const bytes content = b.build();
  const auto whole = gguf::file::view(content);
  ASSERT_TRUE(whole);
  const auto shape = read_hyperparameters(whole->metadata(), 300, {});
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->attention_divisor, 8.0F) << "128 elements for 2 heads, not 32 of a head";
}

TEST(model_read, qwen35_has_states_beside_keys) {
  const image file(small_hybrid("gpt2", 1).build());
  const auto m = file.load();
  ASSERT_TRUE(m) << m.error().message;
  const hyperparameters& h = m->shape;
  EXPECT_EQ(h.n_layers, 4U) << "the fifth predicts further tokens";
  EXPECT_EQ(h.n_skipped, 1U);
  EXPECT_EQ(m->n_skipped, 15U);
  EXPECT_EQ(h.recurrent, (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(h.n_attending(), 2U);
  EXPECT_EQ(h.state_elements(), 2U * (3 * 160 + 4 * 16 * 24));
  EXPECT_TRUE(h.head_norms && h.rope_neox);
  EXPECT_EQ(h.rope_dims, 8U);
  EXPECT_EQ(h.head_dim, 32U);
  const layer& state = m->layers[0];
  const layer& keys = m->layers[1];
  EXPECT_EQ(state.attn_q, no_weight);
  EXPECT_EQ(keys.ssm_out, no_weight);
  EXPECT_EQ(m->weights[keys.attn_q].ne[1], 2 * 2 * 32) << "each head and its gate";
  EXPECT_EQ(m->weights[state.ffn_norm].name, "blk.0.post_attention_norm.weight");
  EXPECT_EQ(m->weights[state.ssm_conv].ne[0], 4);
  EXPECT_EQ(m->weights[state.ssm_conv].ne[1], 160);
  const weight& gates = m->weights[state.ssm_gates];
  EXPECT_EQ(gates.ne[0], 4);
  EXPECT_EQ(gates.ne[1], 2);
  std::vector<float> numbers(8);
  ASSERT_TRUE(stream(*m, state.ssm_gates, [&](uint64_t offset, std::span<const std::byte> part) {
    std::memcpy(reinterpret_cast<std::byte*>(numbers.data()) + offset, part.data(), part.size());
    return result<void>{};
  }));
  for (int i = 0; i < 4; ++i) EXPECT_LT(numbers[i], 0) << "factors first";
}

TEST(model_read, qwen35_rejects_by_name) {
  const rejected rows[] = {
      {"no convolution", [](auto& b) { b.erase("qwen35.ssm.conv_kernel"); },
       "key 'qwen35.ssm.conv_kernel' is missing"},
      {"a convolution of one row", [](auto& b) { b.u32("qwen35.ssm.conv_kernel", 1); },
       "ssm.conv_kernel' is 1; expected 2 to 32"},
      {"heads that do not divide", [](auto& b) { b.u32("qwen35.ssm.group_count", 3); },
       "3 heads of keys, 4 of values and 96 elements of values do not divide"},
      {"a state without end",
       [](auto& b) { b.u32("qwen35.ssm.state_size", 65535).u32("qwen35.ssm.inner_size", 65532); },
       "a state of more than 2^31 elements"},
      {"attention nowhere", [](auto& b) { b.u32("qwen35.full_attention_interval", 9); },
       "full_attention_interval' leaves no layer with attention among 4", BITNET_UNSUPPORTED},
      {"attention every zeroth", [](auto& b) { b.u32("qwen35.full_attention_interval", 0); },
       "full_attention_interval' is 0; expected 1 to"},
      {"more ahead than there are", [](auto& b) { b.u32("qwen35.nextn_predict_layers", 4); },
       "nextn_predict_layers' is 4; expected fewer than the 4 blocks"},
      {"no decays", [](auto& b) { b.drop("blk.2.ssm_a"); }, "tensor 'blk.2.ssm_a' is missing"},
      {"a decay that grows",
       [](auto& b) {
         b.drop("blk.0.ssm_a");
         b.add("blk.0.ssm_a", {4}, 0, tests::f32_data(4, 0.5F));
       },
       "tensor 'blk.0.ssm_a': element 0 is above zero"},
      {"factors of another convolution",
       [](auto& b) {
         b.drop("blk.0.ssm_conv1d.weight");
         b.add("blk.0.ssm_conv1d.weight", {3, 160}, 0, tests::f32_data(480, 0.5F));
       },
       "tensor 'blk.0.ssm_conv1d.weight' has shape [3, 160]; the metadata asks "
       "for [4, 160]"},
      {"queries without gates",
       [](auto& b) {
         b.drop("blk.1.attn_q.weight");
         b.add("blk.1.attn_q.weight", {128, 64}, 0, tests::f32_data(8192, 0.1F));
       },
       "has shape [128, 64]; the metadata asks for [128, 128]"},
      {"keys in a layer with a state",
       [](auto& b) { b.add("blk.0.attn_k.weight", {128, 32}, 0, tests::f32_data(4096, 0.1F)); },
       "'blk.0.attn_k.weight' has no place in the graph of architecture", BITNET_UNSUPPORTED},
  };
  for (const rejected& row : rows) expect_rejected(row, small_hybrid());
}

TEST(model_read, gemma3_rejects_by_name) {
  const rejected rows[] = {
      {"no window", [](auto& b) { b.erase("gemma3.attention.sliding_window"); },
       "key 'gemma3.attention.sliding_window' is missing"},
      {"a window of nothing", [](auto& b) { b.u32("gemma3.attention.sliding_window", 0); },
       "sliding_window' is 0; expected 1 to"},
      {"capped scores", [](auto& b) { b.f32("gemma3.attn_logit_softcapping", 50); },
       "attn_logit_softcapping' asks for something", BITNET_UNSUPPORTED},
      {"capped logits", [](auto& b) { b.f32("gemma3.final_logit_softcapping", 30); },
       "final_logit_softcapping' asks for something", BITNET_UNSUPPORTED},
      {"a pattern of other layers",
       [](auto& b) {
         b.template numbers<uint8_t>("gemma3.attention.sliding_window_pattern", 7, {1, 0, 1});
       },
       "has 3 elements of type bool; expected true or false for each of 2 layers"},
      {"a pattern of numbers with fractions",
       [](auto& b) {
         b.template numbers<float>("gemma3.attention.sliding_window_pattern", 6, {1, 0});
       },
       "expected true or false for each of 2 layers"},
      {"a pattern of nothing", [](auto& b) { b.u32("gemma3.attention.sliding_window_pattern", 0); },
       "sliding_window_pattern' is 0; expected 1 to"},
      {"a negative base", [](auto& b) { b.f32("gemma3.rope.freq_base_swa", -1); },
       "freq_base_swa' is not a finite number above zero"},
      {"a scale that is no number",
       [](auto& b) { b.f32("gemma3.attention.scale", std::numeric_limits<float>::infinity()); },
       "attention.scale' is not a finite number above zero"},
      {"no norm behind attention", [](auto& b) { b.drop("blk.1.post_attention_norm.weight"); },
       "tensor 'blk.1.post_attention_norm.weight' is missing"},
      {"a norm that it has not", [](auto& b) { add_norm(b, "blk.0.attn_sub_norm.weight", 128); },
       "has no place in the graph of architecture 'gemma3'", BITNET_UNSUPPORTED},
  };
  for (const rejected& row : rows) expect_rejected(row, small_gemma());
  const image file(small_gemma().build());
  const auto other = file.load({.gate = activation::silu});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("is computed with GELU and nothing else"),
            std::string::npos);
  gguf_builder elsewhere = small_model("qwen3");
  elsewhere.u32("qwen3.attention.sliding_window", 4);
  const image windows_elsewhere(elsewhere.build());
  EXPECT_FALSE(windows_elsewhere.load()) << "no other architecture has windows of layers";
}

TEST(model_read, norms_of_inputs_belong_to_matrices) {
  for (const char* arch : {"qwen3", "gemma3"}) {
    const image file(small_embedder(arch).build());
    const auto m = file.load();
    ASSERT_TRUE(m) << arch << ": " << m.error().message;
    EXPECT_TRUE(m->shape.input_norms && m->shape.head_norms && m->shape.trained_on_i8);
    EXPECT_TRUE(m->shape.windowed.empty()) << "the file names no window";
    for (const layer& l : m->layers)
      for (const uint32_t w :
           {l.attn_q, l.attn_k, l.attn_v, l.attn_output, l.ffn_gate, l.ffn_up, l.ffn_down}) {
        const weight& matrix = m->weights[w];
        ASSERT_NE(matrix.input_norm, no_weight) << matrix.name;
        const weight& norm = m->weights[matrix.input_norm];
        EXPECT_EQ(norm.name,
                  matrix.name.substr(0, matrix.name.find(".weight")) + "_norm_in.weight");
        EXPECT_EQ(norm.ne[0], matrix.ne[0]);
        EXPECT_EQ(norm.format, BITNET_FORMAT_F32);
      }
    EXPECT_EQ(m->weights[m->output].input_norm, no_weight);
  }
  gguf_builder with_window = small_embedder("gemma3");
  const image file(with_window.u32("gemma3.attention.sliding_window", 5).build());
  EXPECT_EQ(file.load()->shape.window, 5U) << "the file's word holds";
}

TEST(model_read, norms_of_inputs_are_all_there_or_none) {
  const rejected rows[] = {
      {"six of seven", [](auto& b) { b.drop("blk.0.attn_k_norm_in.weight"); },
       "tensor 'blk.0.attn_k_norm_in.weight' is missing"},
      {"one of fourteen",
       [](auto& b) {
         b = small_model("qwen3");
         b.add("blk.1.ffn_down_norm_in.weight", {256}, 1, bytes(512));
       },
       "tensor 'blk.0.attn_q_norm_in.weight' is missing"},
      {"of another width",
       [](auto& b) {
         b.drop("blk.1.ffn_down_norm_in.weight");
         b.add("blk.1.ffn_down_norm_in.weight", {128}, 1, bytes(256));
       },
       "'blk.1.ffn_down_norm_in.weight' has shape [128]; the metadata asks for [256]"},
      {"of no matrix",
       [](auto& b) { b.add("blk.0.attn_qkv_norm_in.weight", {128}, 1, bytes(256)); },
       "'blk.0.attn_qkv_norm_in.weight' has no place in the graph", BITNET_UNSUPPORTED},
  };
  for (const rejected& row : rows) expect_rejected(row, small_embedder("qwen3"));
  gguf_builder elsewhere = small_model("llama");
  elsewhere.add("blk.0.attn_q_norm_in.weight", {128}, 1, bytes(256));
  const image norms_elsewhere(elsewhere.build());
  EXPECT_FALSE(norms_elsewhere.load()) << "no other architecture has them";
}

TEST(model_read, groups_of_activations_fit_weights) {
  weight w;
  w.format = BITNET_FORMAT_TERNARY2;
  const auto largest = [&](int64_t k, uint64_t group, uint32_t wanted) {
    w.ne[0] = k;
    w.scale_group = group;
    return activation_group_of(w, wanted);
  };
  EXPECT_EQ(largest(4096, 128, 32), 32U);
  EXPECT_EQ(largest(4096, 128, 128), 128U);
  EXPECT_EQ(largest(4096, 64, 128), 128U);
  EXPECT_EQ(largest(4096, 96, 128), 32U) << "96 and 64 do not divide one another";
  EXPECT_EQ(largest(4096, 0, 64), 64U);
  EXPECT_EQ(largest(4096, 4096, 64), 64U);
  EXPECT_EQ(largest(160, 0, 128), 32U);
  EXPECT_EQ(largest(100, 0, 128), 0U);
  EXPECT_EQ(largest(4096, 16, 128), 0U) << "no kernel has groups that short";
  EXPECT_EQ(largest(32768, 16384, 128), 0U) << "nor that long";
  EXPECT_EQ(largest(4096, 128, 0), 0U);
  w.format = BITNET_FORMAT_F16;
  EXPECT_EQ(largest(4096, 0, 32), 0U);
}

TEST(model_read, gives_defaults_where_keys_are_absent) {
  gguf_builder b = small_model("bitnet");
  const image file(b.build());
  const auto m = file.load();
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->shape.head_dim, 64U);
  EXPECT_EQ(m->shape.rope_dims, 64U);
  EXPECT_EQ(m->shape.rope_base, 10000.0F);
  EXPECT_EQ(m->shape.rope_scale, 1.0F);
  EXPECT_EQ(m->shape.n_vocab, 300U);
  EXPECT_EQ(m->rope_divisors, no_weight);

  b.f32("bitnet.rope.freq_base", 500000).f32("bitnet.rope.scaling.factor", 4);
  b.text("bitnet.rope.scaling.type", "linear").u32("bitnet.rope.dimension_count", 32);
  b.number<uint64_t>("bitnet.block_count", 10, 2);                  // any integer width
  b.numbers<int32_t>("bitnet.attention.head_count_kv", 5, {1, 1});  // one per layer
  b.number<double>("bitnet.attention.layer_norm_rms_epsilon", 12, 1e-6);
  const image changed(b.build());
  const auto other = changed.load();
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->shape.rope_base, 500000.0F);
  EXPECT_EQ(other->shape.rope_scale, 0.25F);
  EXPECT_EQ(other->shape.rope_dims, 32U);
  EXPECT_EQ(other->shape.rms_epsilon, 1e-6F);

  b.text("bitnet.rope.scaling.type", "none");
  EXPECT_EQ(image(b.build()).load()->shape.rope_scale, 1.0F) << "none: the factor does not count";
  b.erase("bitnet.rope.scaling.type").f32("bitnet.rope.scaling.factor", 0);
  EXPECT_EQ(image(b.build()).load()->shape.rope_scale, 1.0F) << "0 is written for no scaling";
}

TEST(model_read, maps_weights_of_the_file_without_a_copy) {
  const image file(small_model("bitnet-b1.58").build());
  const auto m = file.load();
  ASSERT_TRUE(m) << m.error().message;
  ASSERT_EQ(m->weights.size(), 2U + 2 * 11);
  for (uint32_t i = 0; i < m->weights.size(); ++i) {
    const weight& w = m->weights[i];
    EXPECT_EQ(w.alias.size(), w.data_bytes) << w.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(w.alias.data()) % 32, 0U) << w.name;
    EXPECT_EQ(streamed(*m, i), bytes(w.alias.begin(), w.alias.end())) << w.name;
  }
  const weight& down = m->weights[m->layers[1].ffn_down];
  EXPECT_EQ(down.name, "blk.1.ffn_down.weight");
  EXPECT_EQ(down.format, BITNET_FORMAT_TERNARY2);
  EXPECT_EQ(down.ne[0], 256);
  EXPECT_EQ(down.ne[1], 128);
  EXPECT_EQ(down.scales, std::vector<float>{0.5F});
  EXPECT_EQ(down.source_type, 36U);
  EXPECT_EQ(m->weights[m->layers[0].attn_norm].rank, 1U);
}

TEST(model_read, converts_what_the_file_has_in_another_form) {
  gguf_builder b = small_model("bitnet");
  auto& q = b.named("blk.0.attn_q.weight");
  q.data[5] = std::byte{0xff};  // code 3
  auto& norm = b.named("blk.0.attn_norm.weight");
  norm.type = 1;
  norm.data.clear();
  for (int i = 0; i < 128; ++i) tests::put<uint16_t>(norm.data, 0x3c00);  // 1.0
  const image file(b.build());
  const auto m = file.load();
  ASSERT_TRUE(m) << m.error().message;
  const uint32_t at = m->layers[0].attn_q;
  EXPECT_TRUE(m->weights[at].alias.empty());
  bytes expected(q.data.begin(), q.data.begin() + 128 * 32);
  expected[5] = std::byte{0x55};
  EXPECT_EQ(streamed(*m, at), expected);
  EXPECT_EQ(m->weights[m->layers[0].attn_norm].format, BITNET_FORMAT_F32);
  EXPECT_EQ(streamed(*m, m->layers[0].attn_norm), tests::f32_data(128, 1.0F));
}

TEST(model_read, streams_where_the_file_is_not_aligned) {
  gguf_builder b = small_model("bitnet");
  b.u32("general.alignment", 8);
  b.alignment = 8;
  add_norm(b, "rope_freqs.weight", 32);
  for (const char* pad : {"", "12345678", "1234567890123456", "123456789012345678901234"}) {
    b.text("padding", pad);
    const image file(b.build());
    const auto m = file.load();
    ASSERT_TRUE(m) << m.error().message;
    for (uint32_t i = 0; i < m->weights.size(); ++i) {
      const weight& w = m->weights[i];
      EXPECT_EQ(streamed(*m, i).size(), w.data_bytes) << w.name;
      if (!w.alias.empty()) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(w.alias.data()) % 32, 0U) << w.name;
      }
    }
  }
}

TEST(model_read, multiplies_scale_tensors_into_the_scales) {
  gguf_builder b = small_model("bitnet");
  b.add("blk.1.ffn_up.scale", {1}, 0, tests::f32_data(1, 3.0F));
  const image file(b.build());
  const auto m = file.load();
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->weights[m->layers[1].ffn_up].scales, std::vector<float>{1.5F});
  EXPECT_EQ(m->weights[m->layers[0].ffn_up].scales, std::vector<float>{0.5F});
}

TEST(model_read, takes_dense_linears_and_an_output_of_its_own) {
  gguf_builder b = small_model("llama");
  auto& up = b.named("blk.0.ffn_up.weight");
  up.type = 8;
  up.data = bytes(128 / 32 * 34 * 256);
  b.add("output.weight", {128, 300}, 2, bytes(128 / 32 * 18 * 300));
  auto& embedding = b.named("token_embd.weight");
  embedding.type = 36;
  embedding.data = tests::i2s_data(128, 300, 1);
  add_norm(b, "rope_freqs.weight", 32);
  const image file(b.build());
  const auto m = file.load();
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->weights[m->layers[0].ffn_up].format, BITNET_FORMAT_Q8_0);
  EXPECT_EQ(m->weights[m->output].format, BITNET_FORMAT_Q4_0);
  EXPECT_EQ(m->weights[m->token_embedding].format, BITNET_FORMAT_TERNARY2);
  EXPECT_EQ(m->weights[m->rope_divisors].ne[0], 32);
}

// K x M weights of -1, 0, +1 in groups of 128 with f16 scales of 0.5 and 0.25.
bytes two_bit_data(uint64_t k, uint64_t m, bool scale_last = false) {
  bytes out;
  for (uint64_t g = 0; g < k * m / 128; ++g) {
    const uint16_t d = g % 2 == 0 ? 0x3800 : 0x3400;
    if (!scale_last) tests::put(out, d);
    for (uint64_t j = 0; j < 32; ++j)
      out.push_back(
          static_cast<std::byte>((g + j) % 3 | (g + j / 3) % 3 << 2 | (j + 1) % 3 << 4 | 2 << 6));
    if (scale_last) tests::put(out, d);
  }
  return out;
}

// With every matrix, the embedding too, of type 42 and groups of 128.
gguf_builder two_bit_model(bool scale_last = false, uint32_t type = 42) {
  gguf_builder b = small_model("llama");
  for (auto& t : b.tensors)
    if (t.type == 36 || t.name == "token_embd.weight") {
      t.type = type;
      t.data = two_bit_data(t.ne[0], t.ne[1], scale_last);
    }
  return b;
}

TEST(model_read, type_42_is_recognised_for_the_whole_file) {
  for (const bool last : {false, true}) {
    gguf_builder b = two_bit_model(last);
    if (last) b.text("oxibonsai.quant_format", "TQ2_0_g128");
    const image file(b.build());
    const auto m = file.load();
    ASSERT_TRUE(m) << m.error().message;
    for (uint32_t i = 0; i < m->weights.size(); ++i) {
      const weight& w = m->weights[i];
      if (w.rank == 1) continue;
      EXPECT_EQ(w.format, BITNET_FORMAT_TERNARY2) << w.name;
      EXPECT_EQ(w.scale_group, 128U) << w.name;
      EXPECT_EQ(m->readings[i].how,
                last ? "Q2_0 in groups of 128, the scale last, recognised by a key"
                     : "Q2_0 in groups of 128, the scale first, recognised by its "
                       "blocks")
          << w.name;
      const bytes form = streamed(*m, i);
      for (uint64_t e = 0; e < form.size() * 4; ++e) {
        const auto k = static_cast<uint64_t>(w.ne[0]);
        const uint64_t g = e / 128, j = e % 128 / 4;
        const uint64_t code[] = {(g + j) % 3, (g + j / 3) % 3, (j + 1) % 3, 2};
        const uint64_t c = e % k;
        const auto byte = std::to_integer<uint32_t>(form[e / k * (k / 4) + c / 128 * 32 + c % 32]);
        ASSERT_EQ(byte >> (6 - 2 * (c % 128 / 32)) & 3U, code[e % 4]) << w.name << " " << e;
        ASSERT_EQ(w.scales[g], g % 2 == 0 ? 0.5F : 0.25F) << w.name << " " << e;
      }
    }
    EXPECT_EQ(m->weights[m->token_embedding].scales.size(), 300U) << "also where it is gathered";
  }
  EXPECT_EQ(image(small_model("llama").build()).load()->sources[0].q2.layout,
            formats::q2_layout::unknown);
  gguf_builder b = two_bit_model(true);
  b.text("general.quantization_version", "TQ2_0_G128");
  EXPECT_TRUE(image(b.build()).load()->readings[0].how.ends_with("recognised by a key"));
  EXPECT_TRUE(image(two_bit_model(true).build())
                  .load()
                  ->readings[0]
                  .how.ends_with("recognised by its blocks"));
  EXPECT_EQ(image(two_bit_model(false, 142).build()).load()->readings[0].how, "PQ2_0, by its type");
}

// Whether the process holds the page at `at`, as the system counts them.
bool is_held(const std::byte* at) {
  const auto page = reinterpret_cast<uintptr_t>(at) / static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uint64_t entry = 0;
  const int table = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(::pread(table, &entry, sizeof entry, static_cast<off_t>(page * sizeof entry)), 8);
  ::close(table);
  return entry >> 63U != 0;
}

TEST(model_read, pages_that_were_read_for_scales_are_given_back) {
  const test::scratch_folder scratch;
  const auto path = scratch.path() / "m.gguf";
  const bytes content = two_bit_model().build();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(content.data()),
             static_cast<std::streamsize>(content.size()));
  auto file = open_file(path);
  ASSERT_TRUE(file) << file.error().message;
  auto m = read(*std::move(file), {});
  ASSERT_TRUE(m) << m.error().message;
  const std::span<const std::byte> table = m->sources[m->token_embedding].bytes;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto* inside = table.data() + (page - reinterpret_cast<uintptr_t>(table.data()) % page);
  ASSERT_LE(inside + page, table.data() + table.size()) << "the tensor has a whole page";
  EXPECT_FALSE(is_held(inside));
  EXPECT_EQ(streamed(*m, m->token_embedding).size(), table.size() / 34 * 32);
  EXPECT_TRUE(is_held(inside)) << "a further read brings the page back";
}

TEST(model_read, a_block_with_plus_two_makes_its_tensor_q8_0) {
  gguf_builder b = two_bit_model();
  b.named("blk.1.ffn_up.weight").data[2] |= std::byte{3};
  const image file(b.build());
  const auto m = file.load();
  ASSERT_TRUE(m) << m.error().message;
  const uint32_t up = m->layers[1].ffn_up;
  EXPECT_EQ(m->weights[up].format, BITNET_FORMAT_Q8_0);
  const bytes form = streamed(*m, up);
  ASSERT_EQ(form.size(), 128U * 256 / 32 * 34);
  EXPECT_EQ(static_cast<int8_t>(form[2]), 2);
  EXPECT_EQ(m->weights[m->layers[0].ffn_up].format, BITNET_FORMAT_TERNARY2);
}

float f16_at(std::span<const std::byte> at) {
  return formats::real_element(gguf::type::f16, at, 0);
}

// The values of rows whose width is a multiple of 128.
std::vector<float> values(const loaded& m, uint32_t index) {
  const weight& w = m.weights[index];
  const bytes data = streamed(m, index);
  const std::span<const std::byte> all(data);
  std::vector<float> out(static_cast<std::size_t>(w.ne[0] * w.ne[1]));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (w.format == BITNET_FORMAT_TERNARY2) {
      const std::size_t in_group = i % 128;
      const auto byte = std::to_integer<int>(all[i / 128 * 32 + in_group % 32]);
      const int code = byte >> (6 - 2 * (in_group / 32)) & 3;
      out[i] = static_cast<float>(code - 1) * w.scales[w.scale_group == 0 ? 0 : i / w.scale_group];
    } else if (w.format == BITNET_FORMAT_Q8_0) {
      const auto block = all.subspan(i / 32 * 34, 34);
      out[i] = f16_at(block) * static_cast<float>(static_cast<int8_t>(block[2 + i % 32]));
    } else {
      out[i] = gguf::load<float>(all.subspan(4 * i));
    }
  }
  return out;
}

TEST(model_read, without_rounding_ternary_weights_are_dense) {
  for (const bool grouped : {true, false}) {
    gguf_builder b = grouped ? two_bit_model(false, 142) : small_model("bitnet-b1.58");
    for (auto& tensor : b.tensors)  // the scale of I2_S is an f32, and this one is no f16
      if (tensor.type == 36) tensor.data = tests::i2s_data(tensor.ne[0], tensor.ne[1], 0.3F);
    const image file(b.build());
    const auto ternary = file.load();
    const auto dense = file.load({.gate = {}, .activations = activations::floats});
    ASSERT_TRUE(ternary && dense);
    EXPECT_EQ(dense->shape.activation_group, 0U);
    for (uint32_t i = 0; i < ternary->weights.size(); ++i) {
      if (ternary->weights[i].format != BITNET_FORMAT_TERNARY2) continue;
      SCOPED_TRACE(ternary->weights[i].name);
      EXPECT_EQ(dense->weights[i].format, grouped ? BITNET_FORMAT_Q8_0 : BITNET_FORMAT_F32);
      EXPECT_TRUE(dense->weights[i].scales.empty());
      EXPECT_EQ(values(*dense, i), values(*ternary, i));
    }
  }
}

gguf_builder rotated_model() {
  gguf_builder b = two_bit_model(false, 142);
  const std::string key = "prism.hadamard.";
  b.u32(key + "version", 1).u32(key + "block_size", 128).text(key + "sign_mode", "explicit");
  b.text(key + "transform", "normalized-sylvester-walsh-hadamard");
  b.text(key + "axis", "input-last-dimension").boolean(key + "gdn_v_grouped", 1);
  b.numbers<int32_t>(key + "sign_widths", 5, {128, 256});
  std::vector<int8_t> signs(384, 1);
  signs[3] = signs[130] = -1;
  b.numbers<int8_t>(key + "sign_values", 1, signs);
  b.texts(key + "weight_names", {"blk.0.ffn_up.weight", "blk.0.ffn_down", "token_embd"});
  b.texts(key + "inverse_weight_names", {"token_embd.weight"});
  return b;
}

TEST(model_read, rotated_weights_are_known) {
  const bytes content = rotated_model().build();
  const auto file = gguf::file::view(content);
  ASSERT_TRUE(file) << file.error().message;
  const auto found = read_hadamard(*file);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_TRUE(*found);
  const hadamard& h = **found;
  EXPECT_EQ(h.block, 128U);
  ASSERT_EQ(h.widths.size(), 2U);
  EXPECT_EQ(h.widths[0].columns, 128U);
  EXPECT_EQ(h.widths[1].columns, 256U);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(h.widths[0].signs[i], i == 3 ? -1 : 1) << i;
  for (int i = 0; i < 256; ++i) EXPECT_EQ(h.widths[1].signs[i], i == 2 ? -1 : 1) << i;
  EXPECT_EQ(h.weights,
            (std::vector<std::string>{"blk.0.ffn_up.weight", "blk.0.ffn_down", "token_embd"}));
  EXPECT_EQ(h.tables, std::vector<std::string>{"token_embd.weight"});
  EXPECT_TRUE(h.heads_are_grouped);
  const image whole(content);
  const auto m = whole.load();
  ASSERT_TRUE(m) << m.error().message;
  const layer& l = m->layers[0];
  const auto signs_of = [&](const transform& t) {
    return m->weights[t.factors].name + " of " + std::to_string(t.block);
  };
  EXPECT_EQ(signs_of(m->weights[l.ffn_up].of_input), "prism.hadamard.signs.128 of 128");
  EXPECT_EQ(signs_of(m->weights[l.ffn_down].of_input), "prism.hadamard.signs.256 of 128");
  EXPECT_EQ(signs_of(m->embedding_transform), "prism.hadamard.signs.128 of 128");
  EXPECT_EQ(m->weights[m->output].of_input, m->embedding_transform) << "tied";
  for (const uint32_t other : {l.attn_q, l.attn_output, l.ffn_gate, m->layers[1].ffn_up})
    EXPECT_EQ(m->weights[other].of_input, transform{}) << m->weights[other].name;
  const bytes factors = streamed(*m, m->weights[l.ffn_down].of_input.factors);
  ASSERT_EQ(factors.size(), 256U * 4);
  for (std::size_t i = 0; i < 256; ++i)
    EXPECT_EQ(gguf::load<float>(std::span<const std::byte>(factors).subspan(4 * i)),
              i == 2 ? -1.0F : 1.0F)
        << i;
  EXPECT_EQ(m->shape.activation_group, 128U);

  gguf_builder plain = rotated_model();
  plain.text("prism.hadamard.sign_mode", "identity").erase("prism.hadamard.gdn_v_grouped");
  plain.erase("prism.hadamard.sign_widths").erase("prism.hadamard.sign_values");
  plain.erase("prism.hadamard.inverse_weight_names");
  const bytes without = plain.build();
  const auto other = read_hadamard(*gguf::file::view(without));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_TRUE((*other)->widths.empty());
  EXPECT_TRUE((*other)->tables.empty());
  EXPECT_FALSE((*other)->heads_are_grouped);
  const bytes none = two_bit_model(false, 142).build();
  EXPECT_EQ(read_hadamard(*gguf::file::view(none))->has_value(), false) << "the keys decide";
}

std::string of_rotation(const char* name) {
  return std::string("prism.hadamard.") + name;
}

const struct {
  const char* why;
  std::function<void(gguf_builder&)> change;
  const char* says;
  bitnet_status status;
} impossible_rotations[] = {
    {"another version", [](auto& b) { b.u32(of_rotation("version"), 2); },
     "'prism.hadamard.version' is 2; this program knows 1", BITNET_UNSUPPORTED},
    {"no version", [](auto& b) { b.erase(of_rotation("version")); },
     "'prism.hadamard.version' is missing", BITNET_BAD_DATA},
    {"another transform", [](auto& b) { b.text(of_rotation("transform"), "dct"); },
     "is 'dct'; this program knows 'normalized-sylvester-walsh-hadamard'", BITNET_UNSUPPORTED},
    {"another axis", [](auto& b) { b.text(of_rotation("axis"), "output"); },
     "is 'output'; this program knows 'input-last-dimension'", BITNET_UNSUPPORTED},
    {"another mode", [](auto& b) { b.text(of_rotation("sign_mode"), "random"); },
     "knows 'identity' and 'explicit'", BITNET_UNSUPPORTED},
    {"a block that is no power of two", [](auto& b) { b.u32(of_rotation("block_size"), 96); },
     "is 96; expected a power of two", BITNET_BAD_DATA},
    {"a block of 0", [](auto& b) { b.u32(of_rotation("block_size"), 0); }, "is 0", BITNET_BAD_DATA},
    {"a block that no row holds", [](auto& b) { b.u32(of_rotation("block_size"), 256); },
     "tensor 'blk.0.ffn_up.weight' is rotated in blocks of 256, but has rows of 128",
     BITNET_BAD_DATA},
    {"a sign of 0",
     [](auto& b) {
       b.template numbers<int8_t>(of_rotation("sign_values"), 1, std::vector<int8_t>(384, 0));
     },
     "element 0 of metadata key 'prism.hadamard.sign_values' is neither", BITNET_BAD_DATA},
    {"too few signs",
     [](auto& b) {
       b.template numbers<int8_t>(of_rotation("sign_values"), 1, std::vector<int8_t>(383, 1));
     },
     "do not agree", BITNET_BAD_DATA},
    {"too many signs",
     [](auto& b) {
       b.template numbers<int8_t>(of_rotation("sign_values"), 1, std::vector<int8_t>(385, 1));
     },
     "do not agree", BITNET_BAD_DATA},
    {"a width twice",
     [](auto& b) { b.template numbers<int32_t>(of_rotation("sign_widths"), 5, {128, 128, 128}); },
     "do not agree", BITNET_BAD_DATA},
    {"a width below zero",
     [](auto& b) { b.template numbers<int32_t>(of_rotation("sign_widths"), 5, {-128, 512}); },
     "do not agree", BITNET_BAD_DATA},
    {"no signs for the rows of a tensor",
     [](auto& b) {
       b.template numbers<int32_t>(of_rotation("sign_widths"), 5, {128});
       b.template numbers<int8_t>(of_rotation("sign_values"), 1, std::vector<int8_t>(128, 1));
     },
     "tensor 'blk.0.ffn_down' is rotated and has rows of 256 elements, for which", BITNET_BAD_DATA},
    {"no widths", [](auto& b) { b.erase(of_rotation("sign_widths")); },
     "'prism.hadamard.sign_widths' is missing", BITNET_BAD_DATA},
    {"no names", [](auto& b) { b.erase(of_rotation("weight_names")); },
     "'prism.hadamard.weight_names' is missing", BITNET_BAD_DATA},
    {"names that are numbers", [](auto& b) { b.u32(of_rotation("weight_names"), 1); },
     "should be an array", BITNET_BAD_DATA},
    {"names that are a list of numbers",
     [](auto& b) { b.template numbers<int32_t>(of_rotation("weight_names"), 5, {1}); },
     "should be a list of names", BITNET_BAD_DATA},
    {"a tensor that is not there",
     [](auto& b) { b.texts(of_rotation("weight_names"), {"blk.9.up"}); },
     "tensor 'blk.9.up' is rotated, and the file has none", BITNET_BAD_DATA},
    {"a table that is not there",
     [](auto& b) { b.texts(of_rotation("inverse_weight_names"), {"embed"}); }, "tensor 'embed'",
     BITNET_BAD_DATA},
    {"a vector of factors",
     [](auto& b) { b.texts(of_rotation("weight_names"), {"blk.1.attn_norm"}); },
     "tensor 'blk.1.attn_norm' is rotated as a matrix; this program knows", BITNET_UNSUPPORTED},
    {"a matrix that is looked up",
     [](auto& b) { b.texts(of_rotation("inverse_weight_names"), {"blk.0.ffn_up.weight"}); },
     "tensor 'blk.0.ffn_up.weight' is rotated as an embedding; this program knows",
     BITNET_UNSUPPORTED},
    {"a number for a truth", [](auto& b) { b.u32(of_rotation("gdn_v_grouped"), 1); },
     "should be a bool", BITNET_BAD_DATA},
};

TEST(model_read, rotations_that_cannot_be_are_rejected) {
  for (const auto& r : impossible_rotations) {
    gguf_builder b = rotated_model();
    r.change(b);
    const image file(b.build());
    const auto m = file.load();
    ASSERT_FALSE(m) << r.why;
    EXPECT_NE(m.error().message.find(r.says), std::string::npos)
        << r.why << ": " << m.error().message;
    EXPECT_EQ(m.error().status, r.status) << r.why;
  }
}

TEST(model_read, streams_large_weights_in_pieces_from_two_threads) {
  gguf_builder b = small_model("bitnet");
  b.u32("bitnet.feed_forward_length", 132000);
  for (const char* blk : {"blk.0.", "blk.1."}) {
    const std::string at = blk;
    for (const char* name : {"ffn_gate.weight", "ffn_up.weight"}) {
      b.named(at + name).ne = {128, 132000};
      b.named(at + name).data = tests::i2s_data(128, 132000, 1);
    }
    b.named(at + "ffn_down.weight").ne = {132000, 128};
    b.named(at + "ffn_down.weight").data = tests::i2s_data(132000, 128, 1);
    b.named(at + "ffn_sub_norm.weight").ne = {132000};
    b.named(at + "ffn_sub_norm.weight").data = tests::f32_data(132000, 1);
  }
  const image file(b.build());
  const auto m = file.load();
  ASSERT_TRUE(m) << m.error().message;
  const uint32_t down = m->layers[0].ffn_down;  // 132000 % 128 != 0: converted
  EXPECT_TRUE(m->weights[down].alias.empty());
  bytes first, second;
  std::thread other([&] { first = streamed(*m, down); });
  second = streamed(*m, down);
  other.join();
  EXPECT_EQ(second.size(), (132000U + 127) / 128 * 32 * 128);
  EXPECT_EQ(first, second);

  int calls = 0;
  const auto stopped = stream(*m, down, [&](uint64_t, std::span<const std::byte>) -> result<void> {
    ++calls;
    return fail(BITNET_CANCELLED, "enough");
  });
  EXPECT_EQ(stopped.error().status, BITNET_CANCELLED);
  EXPECT_EQ(calls, 1) << "the first failure of the sink ends it";
  EXPECT_EQ(stream(*m, 999, nullptr).error().status, BITNET_INVALID_ARGUMENT);
}

void set_f32(gguf_builder& b, const char* tensor, size_t at, float x) {
  std::memcpy(&b.named(tensor).data[at * 4], &x, sizeof x);
}

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

const rejected rejections[] = {
    {"no architecture", [](auto& b) { b.erase("general.architecture"); },
     "'general.architecture' is missing"},
    {"architecture is a number", [](auto& b) { b.u32("general.architecture", 7); },
     "should be a string"},
    {"another architecture", [](auto& b) { b.text("general.architecture", "mamba"); },
     "architecture 'mamba'; this program runs bitnet", BITNET_UNSUPPORTED},
    {"an architecture that a terminal obeys",
     [](auto& b) { b.text("general.architecture", "\x1b[2J"); }, "'\\x1b[2J'", BITNET_UNSUPPORTED},
    {"no tokenizer model", [](auto& b) { b.erase("tokenizer.ggml.model"); },
     "the file has no tokenizer"},
    {"no tokens", [](auto& b) { b.erase("tokenizer.ggml.tokens"); }, "the file has no tokenizer"},
    {"tokens are numbers",
     [](auto& b) { b.template numbers<int32_t>("tokenizer.ggml.tokens", 5, {1}); },
     "should be an array of strings"},
    {"tokens are one string", [](auto& b) { b.text("tokenizer.ggml.tokens", "a"); },
     "array of strings"},
    {"scores are strings", [](auto& b) { b.texts("tokenizer.ggml.scores", {"1"}); },
     "array of numbers"},
    {"token types beyond 32 bits",
     [](auto& b) {
       b.template numbers<int64_t>("tokenizer.ggml.token_type", 11, {int64_t{1} << 40});
     },
     "array of 32-bit integers"},
    {"bos is a string", [](auto& b) { b.text("tokenizer.ggml.bos_token_id", "1"); },
     "should be an integer"},
    {"no context length", [](auto& b) { b.erase("bitnet.context_length"); },
     "'bitnet.context_length' is missing"},
    {"context 0", [](auto& b) { b.u32("bitnet.context_length", 0); }, "is 0; expected 1 to"},
    {"a huge context", [](auto& b) { b.u32("bitnet.context_length", UINT32_MAX); }, "float32"},
    {"no embedding length", [](auto& b) { b.erase("bitnet.embedding_length"); }, "is missing"},
    {"embedding length 0", [](auto& b) { b.u32("bitnet.embedding_length", 0); }, "is 0"},
    {"embedding length -1",
     [](auto& b) { b.template number<int32_t>("bitnet.embedding_length", 5, -1); },
     "is -1; expected 1 to"},
    {"embedding length 2^32",
     [](auto& b) { b.template number<uint64_t>("bitnet.embedding_length", 10, uint64_t{1} << 32); },
     "int32 sum"},
    {"embedding length is text", [](auto& b) { b.text("bitnet.embedding_length", "128"); },
     "should be an integer"},
    {"another embedding length", [](auto& b) { b.u32("bitnet.embedding_length", 256); },
     "has shape"},
    {"no layers", [](auto& b) { b.u32("bitnet.block_count", 0); }, "is 0"},
    {"more layers than tensors", [](auto& b) { b.u32("bitnet.block_count", 60000); },
     "60000 layers"},
    {"more layers than anyone has", [](auto& b) { b.u32("bitnet.block_count", UINT32_MAX); },
     "no model comes near"},
    {"one layer missing", [](auto& b) { b.drop("blk.1.ffn_up.weight"); },
     "'blk.1.ffn_up.weight' is missing"},
    {"feed forward 0", [](auto& b) { b.u32("bitnet.feed_forward_length", 0); }, "is 0"},
    {"heads 0", [](auto& b) { b.u32("bitnet.attention.head_count", 0); }, "is 0"},
    {"kv heads 0", [](auto& b) { b.u32("bitnet.attention.head_count_kv", 0); }, "is 0"},
    {"heads no multiple of kv heads",
     [](auto& b) {
       b.u32("bitnet.attention.head_count", 4).u32("bitnet.attention.head_count_kv", 3);
     },
     "expected a multiple"},
    {"more kv heads than heads", [](auto& b) { b.u32("bitnet.attention.head_count_kv", 4); },
     "expected a multiple"},
    {"kv heads that differ between layers",
     [](auto& b) { b.template numbers<int32_t>("bitnet.attention.head_count_kv", 5, {1, 2}); },
     "differs between layers", BITNET_UNSUPPORTED},
    {"an empty array of kv heads",
     [](auto& b) { b.template numbers<int32_t>("bitnet.attention.head_count_kv", 5, {}); },
     "should be an integer"},
    {"an embedding that does not divide",
     [](auto& b) {
       b.u32("bitnet.attention.head_count", 3).u32("bitnet.attention.head_count_kv", 3);
     },
     "does not divide into 3 heads"},
    {"an odd head size", [](auto& b) { b.u32("bitnet.attention.key_length", 63); },
     "head size 63 is odd", BITNET_BAD_DATA},
    {"keys and values of different sizes",
     [](auto& b) { b.u32("bitnet.attention.value_length", 32); }, "keys of 64 and values of 32",
     BITNET_UNSUPPORTED},
    {"a head size that no tensor has",
     [](auto& b) {
       b.u32("bitnet.attention.key_length", 32).u32("bitnet.attention.value_length", 32);
     },
     "has shape"},
    {"rotation wider than a head", [](auto& b) { b.u32("bitnet.rope.dimension_count", 66); },
     "up to the head size 64"},
    {"rotation of an odd width", [](auto& b) { b.u32("bitnet.rope.dimension_count", 63); },
     "even number"},
    {"rotation of nothing", [](auto& b) { b.u32("bitnet.rope.dimension_count", 0); }, "is 0"},
    {"epsilon missing", [](auto& b) { b.erase("bitnet.attention.layer_norm_rms_epsilon"); },
     "is missing"},
    {"epsilon 0", [](auto& b) { b.f32("bitnet.attention.layer_norm_rms_epsilon", 0); },
     "above zero"},
    {"epsilon negative", [](auto& b) { b.f32("bitnet.attention.layer_norm_rms_epsilon", -1); },
     "above zero"},
    {"epsilon NaN", [](auto& b) { b.f32("bitnet.attention.layer_norm_rms_epsilon", not_a_number); },
     "above zero"},
    {"theta 0", [](auto& b) { b.f32("bitnet.rope.freq_base", 0); }, "above zero"},
    {"theta infinite", [](auto& b) { b.f32("bitnet.rope.freq_base", infinite); }, "above zero"},
    {"theta beyond float32",
     [](auto& b) { b.template number<double>("bitnet.rope.freq_base", 12, 1e300); }, "above zero"},
    {"scaling factor negative", [](auto& b) { b.f32("bitnet.rope.scaling.factor", -2); },
     "above zero"},
    {"scaling factor so small that its inverse overflows",
     [](auto& b) { b.f32("bitnet.rope.scaling.factor", 1e-42F); }, "inverse"},
    {"scaling of another kind", [](auto& b) { b.text("bitnet.rope.scaling.type", "su"); }, "'yarn'",
     BITNET_UNSUPPORTED},
    {"experts", [](auto& b) { b.u32("bitnet.expert_count", 8); }, "expert_count",
     BITNET_UNSUPPORTED},
    {"attention that looks ahead", [](auto& b) { b.boolean("bitnet.attention.causal", 0); },
     "causal", BITNET_UNSUPPORTED},
    {"vocab_size other than the tokens", [](auto& b) { b.u32("bitnet.vocab_size", 301); },
     "is 301, but the tokenizer has 300"},
    {"an embedding of another vocabulary",
     [](auto& b) { b.named("token_embd.weight").ne = {128, 299}; },
     "has shape [128, 299]; the metadata asks for [128, 300]"},
    {"a third dimension", [](auto& b) { b.named("blk.0.attn_q.weight").ne = {128, 64, 2}; },
     "[128, 64, 2]"},
    {"no weights", [](auto& b) { b.tensors.clear(); }, "no weights"},
    {"no embedding", [](auto& b) { b.drop("token_embd.weight"); },
     "'token_embd.weight' is missing"},
    {"no output norm", [](auto& b) { b.drop("output_norm.weight"); },
     "'output_norm.weight' is missing"},
    {"no sub-norm", [](auto& b) { b.drop("blk.0.attn_sub_norm.weight"); },
     "attn_sub_norm.weight' is missing"},
    {"a bias, which the graph does not have",
     [](auto& b) { add_norm(b, "blk.0.attn_q.bias", 128); }, "'blk.0.attn_q.bias' has no place",
     BITNET_UNSUPPORTED},
    {"a layer too many", [](auto& b) { add_norm(b, "blk.2.attn_norm.weight", 128); },
     "has no place", BITNET_UNSUPPORTED},
    {"a norm with NaN", [](auto& b) { set_f32(b, "blk.1.ffn_norm.weight", 7, not_a_number); },
     "'blk.1.ffn_norm.weight': element 7 is not a finite"},
    {"a norm of Q8_0",
     [](auto& b) {
       b.named("output_norm.weight").type = 8;
       b.named("output_norm.weight").data = bytes(136);
     },
     "expected F32, F16 or BF16", BITNET_UNSUPPORTED},
    {"a weight whose type we do not read",
     [](auto& b) {
       b.named("blk.0.attn_k.weight").type = 20;
       b.named("blk.0.attn_k.weight").data = bytes(128 / 32 * 18 * 64);
     },
     "tensor 'blk.0.attn_k.weight': has type IQ4_NL (20); this program reads F32 (0)",
     BITNET_UNSUPPORTED},
    {"a scale of NaN",
     [](auto& b) { set_f32(b, "blk.0.attn_k.weight", 128 * 64 / 16, not_a_number); },
     "'blk.0.attn_k.weight': the I2_S scale"},
    {"a scale tensor of NaN",
     [](auto& b) { b.add("blk.0.attn_q.scale", {1}, 0, tests::f32_data(1, not_a_number)); },
     "not a finite"},
    {"a product of scales that overflows",
     [](auto& b) {
       set_f32(b, "blk.0.attn_q.weight", 128 * 128 / 16, 1e30F);
       b.add("blk.0.attn_q.scale", {1}, 0, tests::f32_data(1, 1e30F));
     },
     "not a finite"},
    {"a scale tensor of two", [](auto& b) { b.add("blk.0.attn_q.scale", {2}, 0, bytes(8)); },
     "has shape [2]"},
    {"a scale tensor in F16", [](auto& b) { b.add("blk.0.attn_q.scale", {1}, 1, bytes(2)); },
     "expected F32", BITNET_UNSUPPORTED},
    {"a scale tensor for a dense weight",
     [](auto& b) {
       b.named("blk.0.attn_q.weight").type = 8;
       b.named("blk.0.attn_q.weight").data = bytes(128 / 32 * 34 * 128);
       b.add("blk.0.attn_q.scale", {1}, 0, tests::f32_data(1, 1));
     },
     "only ternary weights can have a scale tensor", BITNET_UNSUPPORTED},
    {"YaRN beside divisors of its own",
     [](auto& b) {
       b.text("bitnet.rope.scaling.type", "yarn").f32("bitnet.rope.scaling.factor", 4);
       add_norm(b, "rope_freqs.weight", 32);
     },
     "applies one of them", BITNET_UNSUPPORTED},
    {"LongRoPE without its divisors",
     [](auto& b) { b.text("bitnet.rope.scaling.type", "longrope"); },
     "'rope_factors_short.weight' is missing"},
    {"LongRoPE with half of its divisors",
     [](auto& b) {
       b.text("bitnet.rope.scaling.type", "longrope");
       add_norm(b, "rope_factors_short.weight", 32);
     },
     "'rope_factors_long.weight' is missing"},
    {"YaRN by more than all of each wave",
     [](auto& b) {
       b.text("bitnet.rope.scaling.type", "yarn").f32("bitnet.rope.scaling.yarn_ext_factor", 2);
     },
     "expected a share from 0 to 1"},
    {"YaRN with its corners crossed",
     [](auto& b) {
       b.text("bitnet.rope.scaling.type", "yarn").f32("bitnet.rope.scaling.yarn_beta_fast", 0.5F);
     },
     "is below yarn_beta_slow"},
    {"larger queries and keys in a part of the head",
     [](auto& b) {
       b.text("bitnet.rope.scaling.type", "yarn").f32("bitnet.rope.scaling.factor", 4);
       b.u32("bitnet.rope.dimension_count", 32);
     },
     "needs all of them to be", BITNET_UNSUPPORTED},
    {"type 42 with two layouts",
     [](auto& b) {
       for (const char* name : {"blk.0.attn_q.weight", "blk.1.attn_q.weight"}) {
         b.named(name).type = 42;
         b.named(name).data = bytes(name[4] == '0' ? 128 * 34 : 128 * 36);
       }
     },
     "type 42 means two things in this file: tensor 'blk.1.attn_q.weight' fits Q2_0 in groups of "
     "64, the scale first, those before it",
     BITNET_UNSUPPORTED},
    {"type 42 of an unrecognisable layout",
     [](auto& b) {
       b.named("blk.0.attn_q.weight").type = 42;
       b.named("blk.0.attn_q.weight").data = bytes(128 * 34);
     },
     "neither sizes nor blocks show", BITNET_UNSUPPORTED},
    {"type 42 of no size",
     [](auto& b) {
       b.named("blk.0.attn_q.weight").type = 42;
       b.named("blk.0.attn_q.weight").data = bytes(128 * 33);
     },
     "tensor 'blk.0.attn_q.weight' is of type 42 and has rows of 128 elements", BITNET_UNSUPPORTED},
    {"RoPE divisors of another count", [](auto& b) { add_norm(b, "rope_freqs.weight", 64); },
     "asks for [32]"},
    {"a RoPE divisor of 0",
     [](auto& b) {
       add_norm(b, "rope_freqs.weight", 32);
       set_f32(b, "rope_freqs.weight", 31, 0);
     },
     "element 31 is not above zero"},
};

TEST(model_read, rejects_models_that_cannot_be_right) {
  for (const rejected& row : rejections) expect_rejected(row, small_model("bitnet"));
}

TEST(model_read, a_llama_has_no_sub_norms) {
  gguf_builder b = small_model("llama");
  add_norm(b, "blk.0.attn_sub_norm.weight", 128);
  const image file(b.build());
  const auto m = file.load();
  ASSERT_FALSE(m);
  EXPECT_NE(m.error().message.find("has no place in the graph of architecture 'llama'"),
            std::string::npos);
}

TEST(model_read, vocabulary_alone_needs_no_hyperparameters) {
  gguf_builder b;
  b.text("general.architecture", "anything");
  tests::add_tokenizer(b, "llama");
  const image file(b.build());
  const auto m = file.load({.vocabulary_only = true, .gate = {}});
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->shape.n_vocab, 300U);
  EXPECT_EQ(m->vocabulary.tokens.size(), 300U);
  EXPECT_EQ(m->vocabulary.model, "llama");
  EXPECT_EQ(m->vocabulary.bos, 1);
  EXPECT_EQ(m->vocabulary.eot, std::nullopt);
  EXPECT_TRUE(m->weights.empty());
  EXPECT_EQ(file.load().error().message,
            "the file has a vocabulary but no weights; name the file of the whole model");
}

TEST(model_read, notices_a_cut_at_every_byte) {
  gguf_builder b = small_model("llama", "llama");
  const bytes file = b.build();
  const size_t head = b.head().size();
  // The data section is large and uniform: every byte near a boundary, every 509th elsewhere.
  for (size_t size = 0; size < file.size();
       size += size < head + 64 || size + 64 > file.size() ? 1 : 509) {
    const image cut(bytes(file.begin(), file.begin() + static_cast<ptrdiff_t>(size)));
    const auto m = cut.load();
    ASSERT_FALSE(m) << "cut at byte " << size << " of " << file.size();
    ASSERT_FALSE(m.error().message.empty());
  }
}

}  // namespace
}  // namespace bitnet::model
