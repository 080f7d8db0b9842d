// Models on disk.
#include "model/model.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "../../scratch_folder.hpp"
#include "small_model.hpp"

namespace bitnet::model {
namespace {

using tests::bytes;
using tests::gguf_builder;
using tests::small_model;
namespace fs = std::filesystem;

class model_file : public testing::Test {
 protected:
  fs::path write(const std::string& name, const gguf_builder& b) const {
    const bytes content = b.build();
    std::ofstream out(folder_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(content.data()),
              static_cast<std::streamsize>(content.size()));
    return folder_ / name;
  }

  const test::scratch_folder scratch_;
  const fs::path& folder_ = scratch_.path();
};

TEST_F(model_file, loads_with_its_tokenizer) {
  for (const char* vocabulary : {"gpt2", "llama"}) {
    auto m = model::load(write("m.gguf", small_model("bitnet-b1.58", vocabulary)), {});
    ASSERT_TRUE(m) << m.error().message;
    EXPECT_EQ(m->tokens().kind(), vocabulary);
    EXPECT_EQ(m->tokens().size(), 300U);
    EXPECT_EQ(m->layers().size(), 2U);
    EXPECT_EQ(m->shape().name, "small");
    EXPECT_EQ(m->output(), m->token_embedding());
    const model moved = std::move(*m);
    EXPECT_EQ(moved.weights()[moved.output_norm()].name, "output_norm.weight");
    EXPECT_EQ(moved.weights()[0].alias.size(), moved.weights()[0].data_bytes)
        << "mapped, not copied";
  }
}

TEST_F(model_file, failures_name_the_file) {
  const auto none = model::load(folder_ / "none.gguf", {});
  EXPECT_EQ(none.error().status, BITNET_NOT_FOUND);
  EXPECT_NE(none.error().message.find("none.gguf'"), std::string::npos);
  const auto wrong =
      model::load(write("x.gguf", small_model("bitnet").u32("bitnet.block_count", 3)), {});
  EXPECT_EQ(wrong.error().status, BITNET_BAD_DATA);
  EXPECT_NE(wrong.error().message.find("x.gguf'"), std::string::npos) << wrong.error().message;
}

TEST_F(model_file, a_file_cut_after_loading_is_noticed_before_it_is_read) {
  const fs::path path = write("m.gguf", small_model("bitnet"));
  const auto m = model::load(path, {});
  ASSERT_TRUE(m) << m.error().message;
  fs::resize_file(path, 100);
  const auto ok =
      m->stream_weight(0, [](uint64_t, std::span<const std::byte>) -> result<void> { return {}; });
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().status, BITNET_BAD_DATA);
}

TEST_F(model_file, scales_are_there_while_they_are_held) {
  gguf_builder b = small_model("bitnet-b1.58");
  b.add("blk.1.ffn_up.scale", {1}, 0, tests::f32_data(1, 3.0F));
  const auto path = write("m.gguf", b);
  const auto m = model::load(path, {});
  ASSERT_TRUE(m) << m.error().message;
  const auto scales = [&] {
    std::vector<std::vector<float>> out;
    for (const weight& w : m->weights()) out.push_back(w.scales);
    return out;
  };
  const auto before = scales();
  EXPECT_EQ(before[m->layers()[1].ffn_up], std::vector<float>{1.5F}) << "0.5 times 3";
  for (int round = 0; round < 2; ++round) {
    auto one = m->hold_scales();
    auto other = m->hold_scales();
    ASSERT_TRUE(one && other);
    one->reset();
    EXPECT_EQ(scales(), before) << "they are held";
    other->reset();
    for (const weight& w : m->weights()) EXPECT_EQ(w.scales.capacity(), 0U) << w.name;
  }
  fs::resize_file(path, fs::file_size(path) / 2);
  const auto cut = m->hold_scales();
  ASSERT_FALSE(cut) << "the file lost bytes that they come from";
  EXPECT_EQ(cut.error().status, BITNET_BAD_DATA) << cut.error().message;
}

}  // namespace
}  // namespace bitnet::model
