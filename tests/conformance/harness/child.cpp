#include "harness/child.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "harness/channel.hpp"

namespace bitnet::conformance {
namespace {

// In place of GoogleTest's printer, so that whatever is printed is the plugin's.
class teller : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    text_.clear();
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
                  {"ms", r.elapsed_time()}});
  }
  static std::string name(const testing::TestInfo& test) {
    return std::string(test.test_suite_name()) + "." + test.name();
  }

  std::string text_;
};

}  // namespace

int run_suite(const options& o) {
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
