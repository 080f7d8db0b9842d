#include "harness/child.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <set>
#include <string>

#include "harness/channel.hpp"
#include "model/runner.hpp"

namespace bitnet::conformance {
namespace {

// How the weights of the running test were kept.
std::set<std::string>& kept_weights() {
  static std::set<std::string> all;
  return all;
}
void hear_weight(const std::string& how) {
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  kept_weights().insert(how);
}

// In place of GoogleTest's printer, so that whatever is printed is the plugin's.
class teller : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    text_.clear();
    kept_weights().clear();
    channel::say({{"began", name(test)}});
  }
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (part.passed()) return;
    constexpr std::size_t enough = 4000;
    if (text_.size() > enough) return;
    if (!text_.empty()) text_ += "\n";
    text_ += part.message();
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    const testing::TestResult& r = *test.result();
    channel::say({{"ended", name(test)},
                  {"status", r.Failed()    ? "failed"
                             : r.Skipped() ? "skipped"
                                           : "passed"},
                  {"text", text_},
                  {"weights", kept_weights()},
                  {"ms", r.elapsed_time()}});
  }
  static std::string name(const testing::TestInfo& test) {
    return std::string(test.test_suite_name()) + "." + test.name();
  }

  std::string text_;
};

}  // namespace

int run_suite(const options& o) {
  on_weight = hear_weight;
  int argc = 1;
  std::string program = "bitnet-backend-conformance";
  char* argv[] = {program.data(), nullptr};
  testing::InitGoogleTest(&argc, argv);
  testing::GTEST_FLAG(filter) = o.filter;
  testing::GTEST_FLAG(shuffle) = false;
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new teller);
  const int failed = RUN_ALL_TESTS();
  channel::say({{"done", failed}});
  return failed;
}

}  // namespace bitnet::conformance
