// A model on two devices, through the C API: one of them is lost, changes its file, or is left. The
// text must be what it would have been.

#include <functional>
#include <limits>
#include <set>

#include "yard.hpp"

namespace bitnet::test {
namespace {

// Under a sanitizer each token takes a hundred times as long.
#ifdef BITNET_SANITIZED
constexpr int32_t length = 12;
#else
constexpr int32_t length = 32;
#endif
const std::string prompt = "Once upon a time there was a";

bitnet_model_options with_layers(uint32_t n) {
  bitnet_model_options o;
  bitnet_model_defaults(&o, sizeof o);
  o.gpu_layers = BITNET_GPU_LAYERS_COUNT;
  o.n_gpu_layers = n;
  return o;
}

// "cpu:0 e0 fragile:0 1-2h": what each part has.
std::string parts_of(const nlohmann::json& report) {
  std::string out;
  for (const auto& p : report["parts"]) {
    const uint32_t first = p["layers"]["first"], n = p["layers"]["count"];
    out += (out.empty() ? "" : " ") + p["device"].get<std::string>() + " " +
           (p["embedding"] ? "e" : "") + std::to_string(first) + "+" + std::to_string(n) +
           (p["head"] ? "h" : "");
  }
  return out;
}

class cut : public testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "no demo model in models/";
    yard_.install("cpu", read(BITNET_CPU_PLUGIN));
    yard_.describe("cpu");
    yard_.install("fragile", read(BITNET_FRAGILE_PLUGIN));
    yard_.describe("fragile");
    program p(yard_, "cpu");
    undisturbed_ = conversation(p).generate(prompt, length);
    ASSERT_GT(undisturbed_.size(), static_cast<std::size_t>(length));
  }
  void TearDown() override { unsetenv("BITNET_FRAGILE_STEPS"); }

  yard yard_;
  std::string undisturbed_;
};

TEST_F(cut, is_judged_by_what_was_uploaded) {
  const std::pair<uint32_t, const char*> rows[] = {{1, "cpu:0 e0+2 fragile:0 2+1h"},
                                                   {2, "cpu:0 e0+1 fragile:0 1+2h"},
                                                   {3, "cpu:0 e0+0 fragile:0 0+3h"},
                                                   {4, "fragile:0 e0+3h"},
                                                   {0, "cpu:0 e0+3h"}};
  for (const auto& [n, parts] : rows) {
    SCOPED_TRACE(n);
    const bitnet_model_options o = with_layers(n);
    program p(yard_, "fragile", &o);
    conversation c(p);
    EXPECT_EQ(c.generate(prompt, length), undisturbed_);
    const auto report = c.report();
    EXPECT_EQ(parts_of(report), parts) << report;
    for (const auto& part : report["parts"]) {
      uint64_t sum = part.value("embedding_bytes", 0U) + part.value("head_bytes", 0U);
      for (const uint64_t layer : part["layer_bytes"]) sum += layer;
      EXPECT_EQ(sum, part["weight_bytes"]);
      EXPECT_GT(sum, 0U);
    }
    // What ran is counted on each.
    std::set<std::string> ids;
    std::set<std::string> devices;
    for (const auto& k : report["kernels"]) {
      ids.insert(k["id"]);
      devices.insert(k["device"]);
    }
    EXPECT_EQ(ids.contains("linear_ternary.ternary2.reference"), n != 0) << report["kernels"];
    EXPECT_EQ(devices.size(), report["parts"].size()) << report["kernels"];
  }
}

TEST_F(cut, goes_on_when_a_device_is_lost) {
  for (const uint32_t layers : {1U, 3U})
    for (const int steps : {0, 1, 7, length - 1}) {
      SCOPED_TRACE(std::to_string(layers) + " layers, lost after " + std::to_string(steps));
      setenv("BITNET_FRAGILE_STEPS", std::to_string(steps).c_str(), 1);
      const bitnet_model_options o = with_layers(layers);
      program p(yard_, "fragile,cpu", &o);
      conversation c(p);
      EXPECT_EQ(c.report()["device"], "fragile:0");
      EXPECT_EQ(c.generate(prompt, length), undisturbed_);
      const auto report = c.report();
      EXPECT_EQ(parts_of(report), "cpu:0 e0+3h") << report;
      ASSERT_EQ(report["moves"].size(), 1U);
      EXPECT_EQ(report["moves"][0]["method"], "recompute");
      EXPECT_NE(p.log().find("fragile:0 is lost"), std::string::npos) << p.log();
      EXPECT_EQ(parts_of(conversation(p).report()), "cpu:0 e0+3h") << "new sessions, too";
    }
}

TEST_F(cut, says_why_it_cannot_go_on) {
  setenv("BITNET_FRAGILE_STEPS", "6", 1);
  const bitnet_model_options o = with_layers(1);
  program p(yard_, "fragile", &o);
  conversation c(p);
  try {
    c.generate(prompt, length);
    ADD_FAILURE() << "the device is gone, and the text went on";
  } catch (const failed_call& e) {
    EXPECT_EQ(e.status, BITNET_DEVICE_LOST) << e.what();
    EXPECT_NE(std::string(e.what()).find("fragile,cpu"), std::string::npos) << e.what();
  }
  c.prefer("cpu");
  EXPECT_EQ(parts_of(c.report()), "cpu:0 e0+3h");
  c.generate("", 5);
}

TEST_F(cut, takes_a_new_copy_of_either_backend) {
  uint32_t serial = 0;
  for (const auto& [backend, file] :
       {std::pair("cpu", BITNET_CPU_PLUGIN), std::pair("fragile", BITNET_FRAGILE_PLUGIN)})
    for (const auto& [policy, method] : {std::pair(BITNET_RELOAD_MIGRATE, "migrate"),
                                         std::pair(BITNET_RELOAD_RECOMPUTE, "recompute")}) {
      SCOPED_TRACE(std::string(backend) + ", " + method);
      const bitnet_model_options o = with_layers(2);
      program p(yard_, "fragile", &o);
      conversation c(p);
      nlohmann::json answer;
      EXPECT_EQ(c.generate(prompt, length,
                           [&](int i) {
                             if (i != 5) return;
                             yard_.install(backend, rebuilt(read(file), ++serial));
                             answer = p.reload(backend, policy);
                           }),
                undisturbed_);
      EXPECT_EQ(answer["changed"], true) << answer;
      EXPECT_EQ(answer["generation"], 2) << answer;
      EXPECT_EQ(answer["sessions"]["moving"], 1) << answer;
      EXPECT_EQ(answer["compared"]["difference"], 0) << answer;
      const auto report = c.report();
      EXPECT_EQ(parts_of(report), "cpu:0 e0+1 fragile:0 1+2h");
      ASSERT_EQ(report["moves"].size(), 1U) << report;
      EXPECT_EQ(report["moves"][0]["method"], method);
      EXPECT_EQ(p.generations(backend).back(), "active");
    }
}

TEST_F(cut, is_left_and_taken_again_with_keys_and_values) {
  const bitnet_model_options o = with_layers(2);
  program p(yard_, "fragile", &o);
  conversation c(p);
  EXPECT_EQ(c.generate(prompt, length,
                       [&](int i) {
                         if (i == 4) c.prefer("cpu");
                         if (i == 8) c.prefer("fragile");
                         if (i == 9) c.prefer("fragile");  // is there
                       }),
            undisturbed_);
  const auto report = c.report();
  EXPECT_EQ(parts_of(report), "cpu:0 e0+1 fragile:0 1+2h");
  ASSERT_EQ(report["moves"].size(), 2U) << report;
  for (const auto& move : report["moves"]) EXPECT_EQ(move["method"], "migrate");
}

TEST_F(cut, options_that_mean_nothing_are_rejected) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  static const float none[] = {0, 0}, bad[] = {1, nan}, two[] = {1, 1}, below[] = {2, -1};
  bitnet_session_options odd;
  bitnet_session_defaults(&odd, sizeof odd);
  odd.kv_k = 9;
  struct {
    const char* says;
    std::function<void(bitnet_model_options&)> set;
  } rows[] = {
      {"gpu_layers must be", [](auto& o) { o.gpu_layers = 3; }},
      {"counts with gpu_layers COUNT only", [](auto& o) { o.n_gpu_layers = 7; }},
      {"split_mode must be", [](auto& o) { o.split_mode = 2; }},
      {"tensor_split is NULL, with a count of 2", [](auto& o) { o.n_tensor_split = 2; }},
      {"all shares of tensor_split are 0",
       [](auto& o) { o.tensor_split = none, o.n_tensor_split = 2; }},
      {"share 1 of tensor_split is nan",
       [](auto& o) { o.tensor_split = bad, o.n_tensor_split = 2; }},
      {"share 1 of tensor_split is -1",
       [](auto& o) { o.tensor_split = below, o.n_tensor_split = 2; }},
      {"at most 64",
       [](auto& o) {
         o.tensor_split = two, o.n_tensor_split = std::numeric_limits<uint32_t>::max();
       }},
      {"split_mode keeps it on one",
       [](auto& o) {
         o.tensor_split = two, o.n_tensor_split = 2, o.split_mode = BITNET_SPLIT_NONE;
       }},
      {"backend cpu has no device 1", [](auto& o) { o.tensor_split = two, o.n_tensor_split = 2; }},
      {"the KV type must be", [&](auto& o) { o.planned = &odd; }},
  };
  for (const auto& row : rows) {
    bitnet_model_options o;
    bitnet_model_defaults(&o, sizeof o);
    row.set(o);
    try {
      program p(yard_, "cpu", &o);
      ADD_FAILURE() << row.says;
    } catch (const failed_call& e) {
      EXPECT_NE(std::string(e.what()).find(row.says), std::string::npos) << e.what();
    }
  }
  bitnet_model_options o;
  bitnet_model_defaults(&o, sizeof o);
  o.tensor_split = two;
  o.n_tensor_split = 1;
  EXPECT_THROW(program(yard_, "cpu:0", &o), failed_call) << "an index beside shares";
  program p(yard_, "cpu", &o);
  EXPECT_EQ(conversation(p).generate(prompt, length), undisturbed_);
}

}  // namespace
}  // namespace bitnet::test
