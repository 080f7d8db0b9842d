// The report on a model file: what it says of one that runs, and of one that does not.
#include "inspect/inspect.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "../../scratch_folder.hpp"
#include "../model/small_hybrid.hpp"

namespace bitnet::inspect {
namespace {

using tests::bytes;
using tests::gguf_builder;
using tests::small_model;
namespace fs = std::filesystem;
using nlohmann::json;

class inspected : public testing::Test {
 protected:
  fs::path write(const std::string& name, const gguf_builder& b) const {
    return scratch_.write(name, tests::as_text(b.build()));
  }
  static json report(const fs::path& path) {
    const auto text = inspect(path, {});
    EXPECT_TRUE(text) << text.error().message;
    return text ? json::parse(*text) : json();
  }

  const test::scratch_folder scratch_;
  const fs::path& folder_ = scratch_.path();
};

TEST_F(inspected, describes_a_model_that_runs) {
  const json r = report(write("m.gguf", small_model("bitnet-b1.58")));
  EXPECT_TRUE(r["problems"].empty()) << r["problems"];
  EXPECT_EQ(r["architecture"], "bitnet-b1.58");
  EXPECT_EQ(r["format"]["version"], 3);
  EXPECT_EQ(r["format"]["alignment"], 32);
  EXPECT_EQ(r["metadata"]["bitnet-b1.58.attention.layer_norm_rms_epsilon"].dump(), "1e-05");
  EXPECT_EQ(r["metadata"]["tokenizer.ggml.tokens"]["count"], 300);
  EXPECT_EQ(r["metadata"]["tokenizer.ggml.tokens"]["first"].size(), 8U);
  EXPECT_EQ(r["metadata"]["tokenizer.ggml.merges"], json({"w o", "r d"}))
      << "short arrays are whole";
  EXPECT_EQ(r["tensors"].size(), 24U);
  EXPECT_EQ(r["tensors"][0], json({{"name", "token_embd.weight"},
                                   {"type", "F16"},
                                   {"shape", {128, 300}},
                                   {"bytes", 76800},
                                   {"offset", r["tensors"][0]["offset"]}}));
  EXPECT_EQ(r["model"]["layers"], 2);
  EXPECT_EQ(r["model"]["activation"], "relu2");
  EXPECT_EQ(r["model"]["tied_embedding"], true);
}

TEST_F(inspected, says_why_a_file_would_not_run) {
  gguf_builder b;
  b.text("general.architecture", "mamba\xff").f32("odd", std::numeric_limits<float>::quiet_NaN());
  b.number<uint64_t>("wide", 10, UINT64_MAX);
  b.add("a", {256}, 10, bytes(84)).add("b", {256}, 10, bytes(84)).add("c", {1}, 999, bytes(8));
  const json r = report(write("m.gguf", b));
  EXPECT_EQ(r["architecture"], "mamba\xef\xbf\xbd") << "bad UTF-8 is replaced";
  EXPECT_TRUE(r["metadata"]["odd"].is_null());
  EXPECT_EQ(r["metadata"]["wide"], UINT64_MAX);
  EXPECT_EQ(r["tensors"][2]["type"], "unknown (999)");
  EXPECT_FALSE(r.contains("model"));
  ASSERT_EQ(r["problems"].size(), 3U) << r["problems"];
  EXPECT_EQ(r["problems"][0],
            "2 tensors of type Q2_K (10), which this program does not read; first 'a'");
  EXPECT_EQ(r["problems"][1],
            "1 tensor of type unknown (999), which this program does not read; first 'c'");
}

TEST_F(inspected, says_what_holds_for_all_weights) {
  // Of an architecture that nothing reads: what can be said of its weights is said.
  gguf_builder b;
  b.text("general.architecture", "unheard-of");
  bytes packed(32 * 36);
  for (size_t i = 0; i < packed.size(); ++i)
    packed[i] = static_cast<std::byte>(i % 18 < 2 ? 0 : 85);
  b.add("a", {64, 64}, 42, packed);
  b.text("prism.hadamard.transform", "normalized-sylvester-walsh-hadamard");
  b.text("prism.hadamard.axis", "input-last-dimension");
  b.text("prism.hadamard.sign_mode", "identity").u32("prism.hadamard.version", 1);
  b.u32("prism.hadamard.block_size", 64).texts("prism.hadamard.weight_names", {"a"});
  const json r = report(write("m.gguf", b));
  EXPECT_EQ(r["type_42"], json({{"layout", "Q2_0 in groups of 64, the scale first"},
                                {"recognised", "by the sizes of its tensors"}}));
  EXPECT_EQ(r["hadamard"], json({{"block", 64},
                                 {"signs", "identity"},
                                 {"sign_widths", json::array()},
                                 {"weights", 1},
                                 {"tables", 0},
                                 {"heads_are_grouped", false}}));
  EXPECT_EQ(r["problems"].size(), 1U) << r["problems"];

  b.u32("prism.hadamard.version", 3).tensors[0].data.resize(32 * 35);
  const json wrong = report(write("m.gguf", b));
  EXPECT_FALSE(wrong.contains("type_42"));
  EXPECT_FALSE(wrong.contains("hadamard"));
  ASSERT_EQ(wrong["problems"].size(), 3U) << wrong["problems"];
  EXPECT_NE(wrong["problems"][0].get<std::string>().find("is of type 42"), std::string::npos);
  EXPECT_NE(wrong["problems"][1].get<std::string>().find("version' is 3"), std::string::npos);
}

TEST_F(inspected, says_each_problem_once) {
  gguf_builder b = small_model("llama");
  b.named("blk.0.attn_q.weight").type = 42;
  b.named("blk.0.attn_q.weight").data = bytes(128 * 34);  // zeros: every layout fits
  const json r = report(write("m.gguf", b));
  ASSERT_EQ(r["problems"].size(), 1U) << r["problems"];
  EXPECT_NE(r["problems"][0].get<std::string>().find("neither sizes nor blocks"),
            std::string::npos);
}

TEST_F(inspected, reads_one_part_of_a_split_model) {
  gguf_builder b;
  b.u32("split.no", 1).u32("split.count", 2).add("a", {8}, 0, bytes(32));
  const json r = report(write("m-00002-of-00002.gguf", b));
  EXPECT_EQ(r["tensors"].size(), 1U);
  EXPECT_NE(r["problems"][0].get<std::string>().find("open the first"), std::string::npos);
  EXPECT_EQ(inspect(folder_, {}).error().status, BITNET_BAD_DATA)
      << "a directory is no GGUF at all";
}

}  // namespace
}  // namespace bitnet::inspect
