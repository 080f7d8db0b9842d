// From files in memory to shapes and weights: the rules of
// docs/reference/models.md and docs/reference/gguf.md#rules.
#include "model/read.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "bitnet/bitnet.h"
#include "read_fixture.hpp"
#include "small_hybrid.hpp"
#include "small_model.hpp"

namespace bitnet::model {
namespace {

using tests::add_norm;
using tests::bytes;
using tests::gguf_builder;
using tests::image;
using tests::small_embedder;
using tests::small_hybrid;
using tests::small_model;

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
