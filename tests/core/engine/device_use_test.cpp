// Counters of kernels, by the device and the copy of the backend that kept them.

#include "engine/device_use.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "bitnet/abi/ops.h"
#include "bitnet/abi/tensor.h"

namespace bitnet::engine {
namespace {

bitnet_kernel_stat ran(const std::string& id, uint32_t op, uint64_t calls, uint64_t bytes = 0) {
  bitnet_kernel_stat out{};
  out.struct_size = sizeof out;
  out.op = op;
  out.calls = calls;
  out.bytes = bytes;
  id.copy(out.id, sizeof out.id - 1);
  return out;
}

bitnet_kernel_info listed(const std::string& id, uint32_t op, uint32_t format, uint32_t level) {
  bitnet_kernel_info out{};
  out.struct_size = sizeof out;
  out.op = op;
  out.format = format;
  out.level = level;
  id.copy(out.id, sizeof out.id - 1);
  return out;
}

std::shared_ptr<const plugin::trusted_file> copy_of_a_backend() {
  return std::make_shared<const plugin::trusted_file>();
}

device_use use(const std::string& device, std::shared_ptr<const plugin::trusted_file> copy,
               std::vector<bitnet_kernel_stat> kernels) {
  device_use out;
  out.device = device;
  out.library = std::move(copy);
  out.kernels = std::move(kernels);
  return out;
}

TEST(device_use, counts_since_a_snapshot_are_differences_per_copy) {
  const auto mine = copy_of_a_backend();
  const auto other = copy_of_a_backend();
  const auto of = [](const std::string& id, uint64_t calls, uint64_t bytes) {
    return ran(id, BITNET_OP_LINEAR_TERNARY, calls, bytes);
  };
  const std::vector<device_use> before = {use("mine:0", mine, {of("a", 3, 30), of("b", 2, 0)})};
  const auto got =
      since(before, {use("mine:0", mine, {of("a", 5, 70), of("b", 2, 0), of("c", 1, 4)}),
                     use("mine:0", other, {of("a", 9, 90)})});
  ASSERT_EQ(got.size(), 2U);
  ASSERT_EQ(got[0].kernels.size(), 2U) << "b did not run since";
  EXPECT_EQ(got[0].kernels[0].calls, 2U);
  EXPECT_EQ(got[0].kernels[0].bytes, 40U);
  EXPECT_EQ(got[0].kernels[1].calls, 1U);
  EXPECT_EQ(got[1].kernels.at(0).calls, 9U) << "another copy has counters of its own";
  const auto went_back = since(before, {use("mine:0", mine, {of("a", 4, 10)})});
  EXPECT_EQ(went_back[0].kernels.at(0).bytes, 0U);
}

TEST(device_use, a_name_that_two_backends_use_is_counted_for_each) {
  const auto mine = copy_of_a_backend();
  const auto other = copy_of_a_backend();
  std::vector<device_use> all;
  add(all, {use("mine:0", mine, {ran("gemv", BITNET_OP_LINEAR_TERNARY, 3)}),
            use("other:0", other, {ran("gemv", BITNET_OP_LINEAR_TERNARY, 5)})});
  add(all, {use("mine:0", mine, {ran("gemv", BITNET_OP_LINEAR_TERNARY, 4)})});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].kernels.at(0).calls, 7U);
  EXPECT_EQ(all[1].kernels.at(0).calls, 5U);
}

TEST(device_use, a_replaced_backend_keeps_its_own) {
  std::vector<device_use> all;
  add(all, {use("mine:0", copy_of_a_backend(), {ran("gemv", BITNET_OP_LINEAR_TERNARY, 3)})});
  add(all, {use("mine:0", copy_of_a_backend(), {ran("gemv", BITNET_OP_LINEAR_TERNARY, 4)})});
  EXPECT_EQ(all.size(), 2U);
}

TEST(device_use, devices_of_one_backend_are_kept_apart) {
  const auto mine = copy_of_a_backend();
  std::vector<device_use> all;
  add(all, {use("mine:0", mine, {ran("add", BITNET_OP_ADD, 1)}),
            use("mine:1", mine, {ran("add", BITNET_OP_ADD, 1)})});
  EXPECT_EQ(all.size(), 2U);
}

TEST(device_use, one_id_for_two_ops_is_two_rows) {
  std::vector<device_use> all;
  add(all, {use("mine:0", copy_of_a_backend(),
                {ran("any", BITNET_OP_ADD, 1, 8), ran("any", BITNET_OP_MUL, 2),
                 ran("any", BITNET_OP_ADD, 4, 8)})});
  ASSERT_EQ(all.at(0).kernels.size(), 2U);
  EXPECT_EQ(all[0].kernels[0].calls, 5U);
  EXPECT_EQ(all[0].kernels[0].bytes, 16U);
}

TEST(device_use, listed_kernels_describe_those_that_ran) {
  device_use on;
  on.known = std::make_shared<const std::vector<bitnet_kernel_info>>(
      std::vector{listed("one", BITNET_OP_LINEAR_DENSE, BITNET_FORMAT_F16, BITNET_LEVEL_OPTIMISED),
                  listed("two", BITNET_OP_LINEAR_DENSE, BITNET_FORMAT_F16, BITNET_LEVEL_FUSED),
                  listed("two", BITNET_OP_LINEAR_DENSE, BITNET_FORMAT_F32, BITNET_LEVEL_REFERENCE),
                  listed("part", BITNET_OP_ADD, BITNET_FORMAT_NONE, BITNET_LEVEL_FUSED)});
  const auto one = on.describe(ran("one", BITNET_OP_LINEAR_DENSE, 1));
  ASSERT_TRUE(one);
  EXPECT_EQ(one->format, BITNET_FORMAT_F16);
  EXPECT_EQ(one->level, BITNET_LEVEL_OPTIMISED);
  const auto two = on.describe(ran("two", BITNET_OP_LINEAR_DENSE, 1));
  ASSERT_TRUE(two);
  EXPECT_EQ(two->format, BITNET_FORMAT_NONE) << "its counter is of both formats";
  EXPECT_EQ(two->level, BITNET_LEVEL_REFERENCE) << "no better than the worst of them";
  EXPECT_TRUE(on.describe(ran("part", BITNET_OP_MUL, 1))) << "counted by the op of the whole";
  EXPECT_FALSE(on.describe(ran("three", BITNET_OP_LINEAR_DENSE, 1)));
}

}  // namespace
}  // namespace bitnet::engine
