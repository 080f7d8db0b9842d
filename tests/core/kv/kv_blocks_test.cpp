#include "kv/kv_blocks.hpp"

#include <gtest/gtest.h>

#include <set>

namespace bitnet::kv {
namespace {

TEST(kv_blocks, a_table_covers_its_tokens_and_no_more) {
  const struct {
    const char* why;
    uint64_t tokens;
    std::size_t blocks;
  } rows[] = {{"nothing needs nothing", 0, 0},        {"one token needs a block", 1, 1},
              {"a full block is one", 64, 1},         {"one more token opens the next", 65, 2},
              {"shrinking gives blocks back", 64, 1}, {"to the last block", 256, 4}};
  kv_blocks blocks(4);
  std::vector<uint32_t> table;
  for (const auto& r : rows) {
    ASSERT_TRUE(blocks.resize(table, r.tokens)) << r.why;
    EXPECT_EQ(table.size(), r.blocks) << r.why;
    EXPECT_EQ(blocks.available(), 4 - r.blocks) << r.why;
    EXPECT_EQ(std::set<uint32_t>(table.begin(), table.end()).size(), r.blocks)
        << "twice: " << r.why;
  }
  EXPECT_FALSE(blocks.resize(table, 257)) << "there is no fifth block";
  EXPECT_EQ(table.size(), 4U) << "a rejection changes nothing";
}

TEST(kv_blocks, freed_blocks_can_be_allocated_again) {
  kv_blocks blocks(3);
  std::vector<uint32_t> table;
  ASSERT_TRUE(blocks.resize(table, 3 * 64));
  const uint32_t second = table[1];
  blocks.drop(table, 1, 2);
  EXPECT_EQ(table[1], no_block);
  EXPECT_EQ(blocks.available(), 1U);
  blocks.drop(table, 1, 2);
  EXPECT_EQ(blocks.available(), 1U) << "twice is once";
  ASSERT_TRUE(blocks.resize(table, 4 * 64));
  EXPECT_EQ(table, (std::vector<uint32_t>{table[0], no_block, table[2], second}));
  EXPECT_FALSE(blocks.resize(table, 5 * 64));
  blocks.drop(table, 3, 99);
  EXPECT_EQ(blocks.available(), 1U) << "past the end there is nothing";
  ASSERT_TRUE(blocks.resize(table, 0));
  EXPECT_EQ(blocks.available(), 3U);
}

TEST(kv_blocks, two_tables_never_share_a_block) {
  kv_blocks blocks(6);
  std::vector<uint32_t> a;
  std::vector<uint32_t> b;
  ASSERT_TRUE(blocks.resize(a, 130));
  ASSERT_TRUE(blocks.resize(b, 130));
  std::set<uint32_t> all(a.begin(), a.end());
  all.insert(b.begin(), b.end());
  EXPECT_EQ(all.size(), 6U);
  ASSERT_TRUE(blocks.resize(a, 0));
  EXPECT_TRUE(blocks.resize(b, 384));
}

}  // namespace
}  // namespace bitnet::kv
