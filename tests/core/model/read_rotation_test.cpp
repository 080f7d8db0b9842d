// Models whose weights are rotated: docs/reference/gguf.md#rules.
#include "model/read.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bitnet/bitnet.h"
#include "gguf/bytes.hpp"
#include "read_fixture.hpp"
#include "small_model.hpp"

namespace bitnet::model {
namespace {

using tests::bytes;
using tests::gguf_builder;
using tests::image;
using tests::streamed;
using tests::two_bit_model;

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

}  // namespace
}  // namespace bitnet::model
