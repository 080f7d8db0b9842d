#pragma once
// What the tests of whole models share: a device, and a prompt and its logits.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/runner.hpp"
#include "model/tiny_model.hpp"
#include "suites/trial.hpp"

namespace bitnet::conformance {

inline const std::vector<int32_t> prompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};

inline std::vector<token_in> tokens_of(int32_t sequence, uint64_t first = 0,
                                       uint64_t last = prompt.size()) {
  std::vector<token_in> out;
  for (uint64_t i = first; i < last; ++i) out.push_back({prompt[i], sequence});
  return out;
}

class models_test : public testing::Test {
 protected:
  // The model, or a reason to skip it.
  void need(const model& m) {
    const std::string missing = missing_ops(device_, m);
    if (!missing.empty()) GTEST_SKIP() << "graph_query answers none for " << missing;
  }
  runner_options options() const {
    runner_options o;
    o.opened = device_.device;
    return o;
  }

  opened_device device_;
};

class program : public models_test {
 protected:
  std::vector<float> logits_of(const model& m, const std::vector<uint64_t>& chunks,
                               const runner_options& o) {
    runner r(device_.table(), m, o);
    std::vector<float> out;
    uint64_t at = 0;
    for (const uint64_t n : chunks) {
      const std::vector<float> rows = r.run(tokens_of(0, at, at + n));
      out.insert(out.end(), rows.begin(), rows.end());
      at += n;
    }
    return out;
  }
  // What is wrong, in words: an op by itself, or the composites that a model has one kind of.
  std::string culprits(const tiny_shape& shape);
};

}  // namespace bitnet::conformance
