// Trials of a backend: what a program asks before it opens a model.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"
#include "bitnet/bitnet.h"
#include "demo_fixture.hpp"

namespace {

using namespace bitnet::test;  // NOLINT(google-build-using-namespace): the fixtures

// A runtime and a trial of it.
class trials : public with_runtime {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(with_runtime::SetUp());
    if (bitnet_runtime_select(runtime_, &error_) == BITNET_UNAVAILABLE)
      GTEST_SKIP() << error_.message;
  }
  void TearDown() override {
    bitnet_trial_close(trial_);
    with_runtime::TearDown();
  }
  bitnet_status open(uint32_t op, uint32_t format, uint64_t rows, uint64_t inputs,
                     uint32_t tokens = 1, uint32_t matrices = 1) {
    bitnet_trial_close(trial_);
    trial_ = nullptr;
    const bitnet_trial_options options{sizeof options, op,       format, tokens, rows,
                                       inputs,         matrices, 0,      0};
    return bitnet_trial_open(runtime_, &options, &trial_, &error_);
  }

  bitnet_trial* trial_ = nullptr;
};

TEST_F(trials, count_what_ran) {
  const struct {
    uint32_t op, format;
    const char* id;
    uint64_t rows, inputs;
    uint32_t tokens, matrices;
    uint64_t matrix_bytes;
    const char* why;
  } rows[] = {
      {BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, "linear_ternary", 48, 256, 1, 3, 48 * 64,
       "one token"},
      {BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, "linear_ternary", 48, 200, 5, 2, 48 * 64,
       "inputs are padded to whole groups"},
      {BITNET_OP_LINEAR_DENSE, BITNET_FORMAT_F16, "linear_dense", 20, 96, 70, 2, 20 * 192,
       "more tokens than there are different ones"},
      {BITNET_OP_LINEAR_DENSE, BITNET_FORMAT_Q6_K, "linear_dense", 16, 512, 2, 1, 16 * 420,
       "a format in blocks"},
  };
  for (const auto& row : rows) {
    ASSERT_EQ(open(row.op, row.format, row.rows, row.inputs, row.tokens, row.matrices), BITNET_OK)
        << row.why << ": " << error_.message;
    for (int i = 0; i < 2; ++i) {
      bitnet_trial_result r{};
      r.struct_size = sizeof r;
      ASSERT_EQ(bitnet_trial_run(trial_, &r, &error_), BITNET_OK) << row.why << error_.message;
      EXPECT_EQ(r.calls, row.matrices) << row.why;
      EXPECT_EQ(r.n_threads, 2U);
      EXPECT_GT(r.step_ns, 0U) << row.why;
      EXPECT_LE(r.time_ns, r.step_ns) << row.why;
      if (r.bytes != 0) {
        EXPECT_EQ(r.bytes, row.matrices * row.matrix_bytes) << row.why;
      }
      EXPECT_NE(std::string(r.kernel).find(row.id), std::string::npos) << r.kernel;
    }
  }
}

TEST_F(trials, wrong_calls_are_rejected) {
  constexpr uint32_t ternary = BITNET_OP_LINEAR_TERNARY, dense = BITNET_OP_LINEAR_DENSE;
  EXPECT_EQ(open(BITNET_OP_ATTN_PAGED, 0, 8, 8), BITNET_UNSUPPORTED);
  EXPECT_NE(std::string(error_.message).find("linear_dense"), std::string::npos);
  EXPECT_EQ(open(ternary, BITNET_FORMAT_F16, 8, 128), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(open(dense, BITNET_FORMAT_TERNARY2, 8, 128), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(open(dense, 999, 8, 128), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(open(dense, BITNET_FORMAT_Q8_0, 8, 100), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(open(dense, BITNET_FORMAT_F16, 0, 100), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(open(dense, BITNET_FORMAT_F16, 8, uint64_t{1} << 40), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(open(dense, BITNET_FORMAT_F16, 8, 8, 1U << 20), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_trial_open(runtime_, nullptr, &trial_, &error_), BITNET_INVALID_ARGUMENT);
  EXPECT_EQ(bitnet_trial_run(nullptr, nullptr, &error_), BITNET_INVALID_ARGUMENT);
}

}  // namespace
