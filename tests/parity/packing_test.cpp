// Packing of an author's own: what weight_plan answers, when a weight is packed, which kernels see
// it.

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <string>
#include <vector>

#include "bitnet/sdk/interpreter.hpp"

namespace bitnet::parity {
namespace {

constexpr uint64_t m = 11, k = 128, data_bytes = m * 32;

void run_nothing(const sdk::call&, const sdk::share&) noexcept {}

std::atomic<uint64_t> rows_packed, bad_cuts;

// Each row backwards, in steps of four rows.
sdk::packing backwards(bool drops_rows) {
  rows_packed = bad_cuts = 0;
  return {
      "test/backwards/1", [](const sdk::weight& w) { return w.m == m ? w.m * w.row_bytes : 0; },
      [](const sdk::weight& w, const void*, uint64_t first, uint64_t last, uint8_t* out) noexcept {
        rows_packed += last - first;
        if (first % 4 != 0 || (last % 4 != 0 && last != w.m)) ++bad_cuts;
        for (uint64_t r = first; r < last; ++r)
          std::reverse_copy(w.row(r), w.row(r) + w.row_bytes, out + r * w.row_bytes);
      },
      drops_rows, 4};
}

// Three workers, one after the other.
bitnet_host_v0 three_workers() {
  bitnet_host_v0 host{};
  host.struct_size = sizeof host;
  host.parallel_width = [](void*) -> uint32_t { return 3; };
  host.parallel_run = [](void*, uint32_t n, bitnet_task task, void* arg) {
    for (uint32_t w = 0; w < n; ++w) task(arg, w, n);
    return bitnet_status{BITNET_OK};
  };
  host.cancelled = [](void*, uint64_t) -> uint32_t { return 0; };
  return host;
}

class packing : public testing::Test {
 protected:
  packing() {
    err_.struct_size = sizeof err_;
    std::iota(data_.begin(), data_.end(), uint8_t{1});
    desc_.struct_size = sizeof desc_;
    desc_.format = BITNET_FORMAT_TERNARY2;
    desc_.rank = 2;
    desc_.ne[0] = k, desc_.ne[1] = m, desc_.ne[2] = desc_.ne[3] = 1;
    desc_.data_bytes = data_bytes;
    desc_.n_scales = 1;
    desc_.scales = &scale_;
  }

  void author_has(bool drops_rows) {
    author_.primitives = {
        {BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, 0, 0, "own", run_nothing, nullptr,
         backwards(drops_rows)},
        {BITNET_OP_LINEAR_TERNARY, BITNET_FORMAT_TERNARY2, 0, 0, "plain", run_nothing},
        {BITNET_OP_EMBED_GATHER, BITNET_FORMAT_NONE, 0, 0, "gather", run_nothing}};
    author_.primitives.reserve(4);  // packed weights point into it
  }
  // A kernel of another op with the packing of the first.
  void author_gathers_too() {
    author_.primitives.push_back({BITNET_OP_EMBED_GATHER, BITNET_FORMAT_TERNARY2, 0, 0,
                                  "own_gather", run_nothing, nullptr,
                                  author_.primitives[0].packing});
  }

  bitnet_weight_plan plan_of() {
    sdk::tensor t;
    EXPECT_EQ(sdk::describe(&desc_, t, sdk::scales_are::to_come, report_), BITNET_OK);
    bitnet_weight_plan out{};
    sdk::plan(author_, t, out);
    return out;
  }

  // The weight, streamed in.
  sdk::weight sealed(sdk::weight_set& set) {
    EXPECT_EQ(set.create(&desc_, sizeof desc_, 1, sdk::scales_are::given, report_), BITNET_OK);
    EXPECT_EQ(set.write(0, 0, data_.data(), data_bytes, report_), BITNET_OK);
    EXPECT_EQ(set.seal(0, report_), BITNET_OK) << err_.message;
    return set.at(0).view;
  }

  std::string kernel_for(uint32_t op, const sdk::weight& w) {
    const sdk::primitive* found = sdk::find_primitive(author_, op, &w);
    return found ? found->id : "";
  }

  void expect_backwards(const uint8_t* form) {
    for (uint64_t r = 0; r < m; ++r)
      for (uint64_t i = 0; i < 32; ++i)
        ASSERT_EQ(form[r * 32 + i], data_[r * 32 + 31 - i]) << "row " << r << ", byte " << i;
    EXPECT_EQ(rows_packed, m) << "each row once";
    EXPECT_EQ(bad_cuts, 0u) << "in steps of four rows";
  }

  bitnet_error err_{};
  const sdk::reporter report_{&err_, "slot"};
  const bitnet_host_v0 services_ = three_workers();
  const sdk::host host_{&services_};
  sdk::definition author_;
  float scale_ = 1;
  std::vector<uint8_t> data_ = std::vector<uint8_t>(data_bytes);
  bitnet_tensor_desc desc_{};
};

TEST_F(packing, in_place_of_the_rows_is_what_the_plan_reports) {
  author_has(true);
  const bitnet_weight_plan plan = plan_of();
  EXPECT_STREQ(plan.layout_id, "test/backwards/1");
  EXPECT_EQ(plan.packed_bytes, data_bytes);
  EXPECT_EQ(plan.accepts_alias, 0u);

  sdk::weight_set set(author_, host_);
  const sdk::weight w = sealed(set);
  EXPECT_EQ(w.data, nullptr) << "the rows are given back";
  EXPECT_EQ(set.at(0).own.size(), 0u);
  EXPECT_EQ(w.scales, set.at(0).scales.data()) << "they stay beside it";
  ASSERT_NE(w.packed_data(), nullptr) << "there before any step";
  expect_backwards(w.packed_data());
  EXPECT_EQ(kernel_for(BITNET_OP_LINEAR_TERNARY, w), "own");
  EXPECT_EQ(kernel_for(BITNET_OP_EMBED_GATHER, w), "") << "it would read rows";
  author_gathers_too();
  EXPECT_EQ(kernel_for(BITNET_OP_EMBED_GATHER, w), "own_gather");

  bitnet_packed_info info{};
  EXPECT_EQ(set.describe_packed(0, info, report_), BITNET_OK);
  EXPECT_EQ(info.bytes, 0u) << "it is no second form";
  const void* out = nullptr;
  EXPECT_EQ(set.pack(0, &out, report_), BITNET_UNSUPPORTED);
  EXPECT_FALSE(sdk::interpreter::has_second_forms(author_));
}

TEST_F(packing, that_holds_the_scales_too_leaves_nothing_else) {
  author_has(true);
  author_.primitives[0].packing.holds_scales = true;
  sdk::weight_set set(author_, host_);
  const sdk::weight w = sealed(set);
  EXPECT_EQ(w.scales, nullptr);
  EXPECT_TRUE(set.at(0).scales.empty());
}

TEST_F(packing, beside_the_rows_waits_until_somebody_asks) {
  author_has(false);
  const bitnet_weight_plan plan = plan_of();
  EXPECT_STREQ(plan.layout_id, "host/ternary2-rows/1");
  EXPECT_NE(plan.accepts_alias, 0u);

  sdk::weight_set set(author_, host_);
  const sdk::weight w = sealed(set);
  EXPECT_NE(w.data, nullptr);
  EXPECT_EQ(rows_packed, 0u) << "the host may still bring it";
  EXPECT_EQ(kernel_for(BITNET_OP_LINEAR_TERNARY, w), "own");
  EXPECT_EQ(kernel_for(BITNET_OP_EMBED_GATHER, w), "gather");

  EXPECT_TRUE(sdk::interpreter::has_second_forms(author_));
  bitnet_packed_info info{};
  EXPECT_EQ(set.describe_packed(0, info, report_), BITNET_OK);
  EXPECT_EQ(info.bytes, data_bytes);
  EXPECT_STREQ(info.layout_id, "test/backwards/1");
  const void* out = nullptr;
  ASSERT_EQ(set.pack(0, &out, report_), BITNET_OK);
  EXPECT_EQ(out, w.packed_data());
  expect_backwards(w.packed_data());
}

TEST_F(packing, is_for_the_weights_that_it_has_bytes_for) {
  author_has(true);
  desc_.ne[1] = m - 1;
  desc_.data_bytes -= 32;
  EXPECT_STREQ(plan_of().layout_id, "host/ternary2-rows/1");
  sdk::weight_set set(author_, host_);
  ASSERT_EQ(set.create(&desc_, sizeof desc_, 1, sdk::scales_are::given, report_), BITNET_OK);
  ASSERT_EQ(set.write(0, 0, data_.data(), desc_.data_bytes, report_), BITNET_OK);
  ASSERT_EQ(set.seal(0, report_), BITNET_OK);
  EXPECT_EQ(kernel_for(BITNET_OP_LINEAR_TERNARY, set.at(0).view), "plain");
  EXPECT_EQ(rows_packed, 0u);
}

TEST_F(packing, goes_with_the_kernel_that_is_taken_away) {
  author_has(true);
  author_gathers_too();  // it would leave the product without a kernel
  const bitnet_param off{{"disable", 7}, {"own", 3}};
  bitnet_open_request request{};
  request.n_params = 1;
  request.params = &off;
  sdk::interpreter::remove_disabled(request, author_);
  sdk::weight_set set(author_, host_);
  const sdk::weight w = sealed(set);
  EXPECT_EQ(kernel_for(BITNET_OP_LINEAR_TERNARY, w), "plain");
  EXPECT_EQ(kernel_for(BITNET_OP_EMBED_GATHER, w), "gather");
  EXPECT_NE(w.data, nullptr);
}

TEST_F(packing, that_lacks_a_part_is_rejected_in_words) {
  for (const bool without_id : {false, true}) {
    author_ = {};
    author_has(true);
    sdk::interpreter::reject_half_packings(author_);
    EXPECT_EQ(author_.why_unavailable, "");
    sdk::packing& half = author_.primitives[0].packing;
    without_id ? half.layout_id.clear() : void(half.pack = nullptr);
    sdk::interpreter::reject_half_packings(author_);
    EXPECT_NE(author_.why_unavailable.find("packing of kernel own"), std::string::npos);
  }
}

TEST_F(packing, of_a_kernel_is_not_read_as_that_of_a_top_form) {
  author_has(false);
  author_.packing = backwards(false);
  author_.packing.layout_id = "test/other/1";
  sdk::weight_set set(author_, host_);
  const sdk::weight w = sealed(set);
  EXPECT_EQ(w.packed->how, &author_.primitives[0].packing) << "the kernel's comes first";
  EXPECT_FALSE(sdk::reads(author_.packing, w));
}

}  // namespace
}  // namespace bitnet::parity
