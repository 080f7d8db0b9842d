// The longest context that fits into a given room.

#include "model/context_room.hpp"

#include <gtest/gtest.h>

namespace bitnet::model {
namespace {

TEST(max_context, is_whole_blocks_of_what_fits) {
  const struct {
    const char* why;
    uint64_t room, block_bytes, expected;
  } rows[] = {
      {"nothing is free", 0, 100, 0},
      {"less than a block", 99, 100, 0},
      {"a block", 100, 100, 64},
      {"what is over is no block", 299, 100, 128},
      {"a model without keys and values", 1000, 0, 0},
      {"never more than a session may have", UINT64_MAX, 1, 1U << 20},
      {"as many as it may have", uint64_t{100} << 14, 100, 1U << 20},
      {"a block less", (uint64_t{100} << 14) - 1, 100, (1U << 20) - 64},
  };
  for (const auto& row : rows)
    EXPECT_EQ(max_context(row.room, row.block_bytes, 64), row.expected) << row.why;
}

}  // namespace
}  // namespace bitnet::model
