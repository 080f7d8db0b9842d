// Weights of a model file: which stay in the file, which are converted, and how they are streamed.
#include "model/read.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../scratch_folder.hpp"
#include "bitnet/bitnet.h"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"
#include "read_fixture.hpp"
#include "small_model.hpp"

namespace bitnet::model {
namespace {

using tests::add_norm;
using tests::bytes;
using tests::gguf_builder;
using tests::image;
using tests::small_model;
using tests::streamed;
using tests::two_bit_model;

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

}  // namespace
}  // namespace bitnet::model
