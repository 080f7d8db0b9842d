#pragma once
// What the tests of robustness share: a device, and what a rejection is.

#include <gtest/gtest.h>

#include <string>

#include "model/runner.hpp"
#include "suites/trial.hpp"

namespace bitnet::conformance {

class robustness : public testing::Test {
 protected:
  void need(const model& m) {
    const std::string missing = missing_ops(device_, m);
    if (!missing.empty()) GTEST_SKIP() << "graph_query answers none for " << missing;
  }
  const bitnet_backend_v0& table() const { return device_.table(); }
  runner_options options() const {
    runner_options o;
    o.opened = device_.device;
    return o;
  }
  opened_device device_;
};

inline void expect_rejected(const outcome& o, const char* what) {
  EXPECT_NE(o.status, BITNET_OK) << what << " was accepted";
  EXPECT_EQ(o.complaint, "") << what;
}

}  // namespace bitnet::conformance
