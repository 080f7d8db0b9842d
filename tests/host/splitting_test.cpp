// What --n-gpu-layers and --tensor-split accept, and how the layers of devices are printed.
#include "session/splitting.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace bitnet::host {
namespace {

using nlohmann::json;

TEST(gpu_layers, are_auto_all_or_a_number) {
  const std::tuple<const char*, uint32_t, uint32_t> rows[] = {
      {"auto", BITNET_GPU_LAYERS_AUTO, 0},
      {"all", BITNET_GPU_LAYERS_ALL, 0},
      {"0", BITNET_GPU_LAYERS_COUNT, 0},
      {"12", BITNET_GPU_LAYERS_COUNT, 12},
      {"1000000", BITNET_GPU_LAYERS_COUNT, 1000000}};
  for (const auto& [text, how, n] : rows) {
    const auto read = read_gpu_layers(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->how, how) << text;
    EXPECT_EQ(read->n, n) << text;
  }
  for (const char* text : {"", "-1", "abc", "1000000000000", "1000001", "1.5", "AUTO", "nan", "0x3",
                           "99999999999999999999999", "3 ", "all,all"}) {
    const auto read = read_gpu_layers(text);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find("expects auto, all or a number"), std::string::npos);
  }
}

TEST(shares, are_numbers_from_zero_on) {
  const std::pair<const char*, std::vector<float>> rows[] = {
      {"", {}},          {"1", {1}}, {"3,1", {3, 1}}, {"0,1", {0, 1}}, {"0.5,0.25", {0.5F, 0.25F}},
      {" 3, 1 ", {3, 1}}};
  for (const auto& [text, want] : rows) {
    const auto read = read_shares(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(*read, want) << text;
  }
  std::string many = "1";
  for (int i = 0; i < 64; ++i) many += ",1";
  for (const std::string& text :
       {std::string("0"), std::string("0,0"), std::string("nan"), std::string("1,inf"),
        std::string("-1,2"), std::string("1,,2"), std::string(","), std::string("1e39"),
        std::string("a,b"), many, std::string(100000, '7')}) {
    const auto read = read_shares(text);
    ASSERT_FALSE(read) << text;
    EXPECT_LT(read.error().message.size(), 300U);
  }
}

TEST(layers, are_printed_where_there_are_several_devices) {
  const char* cut = R"({"parts": [
      {"device": "cpu:0", "embedding": true, "head": false, "layers": {"first": 0, "count": 12},
       "weight_bytes": 12000000, "mapped_bytes": 9000000},
      {"device": "other:0", "embedding": false, "head": true, "layers": {"first": 12, "count": 18},
       "weight_bytes": 33000000, "mapped_bytes": 0}]})";
  EXPECT_EQ(layers_text(json::parse(cut), "other:0", false),
            "embedding and 0-11 on cpu:0, 12-29 and head on other:0");
  EXPECT_EQ(layers_text(json::parse(cut), "other:0", true),
            "embedding and 0-11 on cpu:0 (12 MB, 9 MB of them in the file's pages), 12-29 and head "
            "on other:0 (33 MB)");
  const char* whole = R"({"parts": [{"device": "cpu:0", "embedding": true, "head": true,
                                     "layers": {"first": 0, "count": 1}}]})";
  EXPECT_EQ(layers_text(json::parse(whole), "cpu:0", false), "");
  EXPECT_EQ(layers_text(json::parse(whole), "other:0", false), "embedding, 0 and head on cpu:0");
  for (const char* odd :
       {"{}", R"({"parts": 3})", R"({"parts": [3]})",
        R"({"parts": [{"layers": -3, "device": 7}, {"layers": {"count": "x"}}]})"})
    EXPECT_NO_THROW((void)layers_text(json::parse(odd), "cpu:0", true)) << odd;
}

}  // namespace
}  // namespace bitnet::host
