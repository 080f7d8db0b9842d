// bitnet_session_program: the ops of a session's program, beside what ran and what the parts have.

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "demo_session.hpp"

namespace {

using bitnet::test::demo_session;
using nlohmann::json;

template <class Call>
json report_of(Call call, bitnet_session* session) {
  std::string text(1 << 20, '\0');
  uint64_t needed = 0;
  bitnet_error error = bitnet::test::blank_error();
  EXPECT_EQ(call(session, text.data(), text.size(), &needed, &error), BITNET_OK) << error.message;
  text.resize(needed);
  return json::parse(text);
}

class program : public testing::Test {
 protected:
  void SetUp() override {
    const bitnet_status s = demo_.open();
    if (s == BITNET_NOT_FOUND || s == BITNET_UNAVAILABLE) GTEST_SKIP() << demo_.error.message;
    ASSERT_EQ(s, BITNET_OK) << demo_.error.message;
  }
  demo_session demo_;
};

TEST_F(program, HasTheOpsThatRun) {
  const json before = report_of(bitnet_session_program, demo_.session);
  ASSERT_EQ(demo_.generate(2), BITNET_OK) << demo_.error.message;
  const json ran = report_of(bitnet_session_report, demo_.session);
  std::set<std::string> ops;
  for (const json& op : before.at("parts").at(0).at("ops")) ops.insert(op.at("op"));
  ASSERT_FALSE(ran.at("kernels").empty());
  for (const json& kernel : ran.at("kernels")) EXPECT_TRUE(ops.contains(kernel.at("op"))) << kernel;
  EXPECT_EQ(report_of(bitnet_session_program, demo_.session), before);
}

TEST_F(program, ABodyIsOfItsCompositesLayerAndWeights) {
  const json report = report_of(bitnet_session_program, demo_.session);
  const json& ops = report.at("parts").at(0).at("ops");
  std::size_t composites = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const uint32_t body = ops[i].value("body", 0U);
    if (body == 0) continue;
    ++composites;
    ASSERT_LT(i + body, ops.size());
    std::set<std::string> weights, of_body;
    for (const json& w : ops[i].value("weights", json::array())) weights.insert(w);
    for (std::size_t k = i + 1; k <= i + body; ++k) {
      EXPECT_EQ(ops[k].value("layer", -1), ops[i].value("layer", -1)) << ops[k];
      for (const json& w : ops[k].value("weights", json::array())) of_body.insert(w);
    }
    EXPECT_EQ(weights, of_body) << ops[i];
  }
  EXPECT_GT(composites, 0U);
}

TEST_F(program, EachLayerOfThePartIsThere) {
  const json report = report_of(bitnet_session_program, demo_.session);
  const json& part = report.at("parts").at(0);
  std::set<uint32_t> layers;
  for (const json& op : part.at("ops"))
    if (op.contains("layer")) layers.insert(op.at("layer").get<uint32_t>());
  ASSERT_EQ(layers.size(), part.at("layers").at("count").get<std::size_t>());
  EXPECT_EQ(*layers.begin(), part.at("layers").at("first").get<uint32_t>());
}

TEST(Program, NeedsASession) {
  bitnet_error error = bitnet::test::blank_error();
  uint64_t needed = 0;
  EXPECT_EQ(bitnet_session_program(nullptr, nullptr, 0, &needed, &error), BITNET_INVALID_ARGUMENT);
}

}  // namespace
