// Calls that look at a file: sizes first, then the text; and a status for each kind of failure.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "../demo_model.hpp"
#include "bitnet/bitnet.h"

namespace {

using nlohmann::json;

struct outcome {
  bitnet_status status = BITNET_OK;
  std::string text;
  bitnet_error error{};
};

template <class Call>
outcome ask(const Call& call) {
  outcome out;
  out.error.struct_size = sizeof out.error;
  uint64_t size = 0;
  out.status = call(nullptr, 0, &size, &out.error);
  if (out.status != BITNET_OK) return out;
  out.text.resize(size);
  out.status = call(out.text.data(), size, &size, &out.error);
  return out;
}

outcome analyze(const std::string& path, uint64_t names) {
  return ask([&](char* to, uint64_t capacity, uint64_t* needed, bitnet_error* err) {
    return bitnet_analyze_library(path.c_str(), names, to, capacity, needed, err);
  });
}

outcome weights(const std::string& path, const char* rules) {
  return ask([&](char* to, uint64_t capacity, uint64_t* needed, bitnet_error* err) {
    return bitnet_inspect_weights(path.c_str(), nullptr, rules, to, capacity, needed, err);
  });
}

TEST(analyze_library, rejects_a_program) {
  const outcome found = analyze("/proc/self/exe", 3);
  EXPECT_EQ(found.status, BITNET_BAD_DATA) << "a program is no library";
  EXPECT_NE(std::string_view(found.error.message).find("is a program"), std::string_view::npos);
}

TEST(analyze_library, has_a_status_for_each_failure) {
  EXPECT_EQ(analyze("/nonexistent.so", 0).status, BITNET_NOT_FOUND);
  EXPECT_EQ(analyze("/", 0).status, BITNET_BAD_DATA);
  if (bitnet::test::demo_model().empty()) GTEST_SKIP() << "models/ holds no model";
  const outcome model = analyze(bitnet::test::demo_model(), 0);
  EXPECT_EQ(model.status, BITNET_BAD_DATA);
  EXPECT_NE(std::string_view(model.error.message).find("model"), std::string_view::npos);
}

TEST(inspect_weights, takes_the_names_of_rules) {
  const std::string model = bitnet::test::demo_model();
  if (model.empty()) GTEST_SKIP() << "models/ holds no model";
  const struct {
    const char* why;
    const char* wanted;
    const char* rules;
  } rows[] = {
      {"without a name the file decides", nullptr, "bitnet-b1.58:i2_s"},
      {"auto: the file decides", "auto", "bitnet-b1.58:i2_s"},
      {"a type alone is of the default family", "f16", "bitnet-b1.58:f16"},
      {"a family and a type", "bitnet-b1.58:f16", "bitnet-b1.58:f16"},
      {"no rules at all", "none", "none"},
      {"rules for any model", "generic", "generic"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const outcome found = weights(model, row.wanted);
    ASSERT_EQ(found.status, BITNET_OK) << found.error.message;
    EXPECT_EQ(json::parse(found.text)["rules"], row.rules);
  }
  EXPECT_EQ(weights(model, "f17").status, BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(weights("/nonexistent.gguf", nullptr).status, BITNET_NOT_FOUND);
}

}  // namespace
