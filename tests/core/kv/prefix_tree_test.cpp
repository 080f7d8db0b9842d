#include "kv/prefix_tree.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "test_secret.hpp"

namespace bitnet::kv {
namespace {

using tokens = std::vector<int32_t>;

const hash_secret secret = test_secret(7);

TEST(chained_hash, stands_for_all_tokens_up_to_the_end_and_for_the_secret) {
  const tokens a{1, 2}, b{1, 3};
  const uint64_t h = chained_hash(0, a, secret);
  EXPECT_EQ(h, chained_hash(0, a, secret));
  EXPECT_NE(h, chained_hash(0, b, secret));
  EXPECT_NE(h, chained_hash(1, a, secret));
  EXPECT_NE(h, chained_hash(0, a, test_secret(8)));
}

TEST(chained_hash, each_process_has_its_own_secret) {
  const auto a = random_secret(), b = random_secret();
  ASSERT_TRUE(a && b);
  EXPECT_NE(*a, *b);
}

uint64_t same_hash(uint64_t, std::span<const int32_t>, const hash_secret&) {
  return 42;
}

TEST(prefix_tree, equal_hashes_of_other_tokens_or_another_parent_are_a_miss) {
  prefix_tree tree(8, 2, secret, same_hash);
  const tokens a{1, 1}, b{2, 2};
  tree.add(3, tree.below(no_block, a));
  EXPECT_EQ(tree.find(tree.below(no_block, a)), 3u);
  EXPECT_EQ(tree.find(tree.below(no_block, b)), no_block) << "other tokens";
  EXPECT_EQ(tree.find(tree.below(3, a)), no_block) << "another parent";
  tree.add(4, tree.below(no_block, b));
  tree.add(5, tree.below(3, a));
  tree.add(6, tree.below(4, a));
  EXPECT_EQ(tree.find(tree.below(no_block, a)), 3u);
  EXPECT_EQ(tree.find(tree.below(no_block, b)), 4u);
  EXPECT_EQ(tree.find(tree.below(3, a)), 5u);
  EXPECT_EQ(tree.find(tree.below(4, a)), 6u);
  tree.remove_leaf(5);
  EXPECT_EQ(tree.find(tree.below(3, a)), no_block);
  EXPECT_EQ(tree.find(tree.below(4, a)), 6u);
}

TEST(prefix_tree, used_children_come_first) {
  prefix_tree tree(8, 1, secret, chained_hash);
  const tokens t{0, 1, 2, 3};
  tree.add(0, tree.below(no_block, std::span(t).first(1)));
  for (uint32_t b = 1; b < 4; ++b) tree.add(b, tree.below(0, std::span(t).subspan(b, 1)));
  for (const uint32_t b : {3, 1, 2}) tree.set_used(b, false);
  EXPECT_EQ(tree.first_child(0), 3u);
  tree.set_used(2, true);
  EXPECT_EQ(tree.first_child(0), 2u);
  EXPECT_EQ(tree.parent(2), 0u);
  for (const uint32_t b : {1, 2, 3}) tree.remove_leaf(b);
  EXPECT_FALSE(tree.has_children(0));
  EXPECT_TRUE(tree.has_children(no_block));
  EXPECT_TRUE(tree.was_removed(tree.below(0, std::span(t).subspan(1, 1))));
  tree.clear();
  EXPECT_FALSE(tree.knows(0));
  EXPECT_FALSE(tree.has_children(no_block));
  EXPECT_FALSE(tree.was_removed(tree.below(no_block, std::span(t).first(1))));
}

TEST(index_lists, lists_keep_their_order_and_only_their_own) {
  index_lists lists(5, 2);
  EXPECT_TRUE(lists.empty(0));
  lists.push_back(0, 1);
  lists.push_back(0, 2);
  lists.push_front(0, 3);
  lists.push_back(1, 4);
  const auto all = [&](uint32_t list) {
    std::vector<uint32_t> out;
    for (uint32_t i = lists.first(list); i != index_lists::none; i = lists.next(i))
      out.push_back(i);
    return out;
  };
  EXPECT_EQ(all(0), (std::vector<uint32_t>{3, 1, 2}));
  EXPECT_EQ(all(1), (std::vector<uint32_t>{4}));
  lists.remove(1);
  lists.remove(4);
  EXPECT_EQ(all(0), (std::vector<uint32_t>{3, 2}));
  EXPECT_TRUE(lists.empty(1));
  lists.clear();
  EXPECT_TRUE(lists.empty(0));
}

}  // namespace
}  // namespace bitnet::kv
