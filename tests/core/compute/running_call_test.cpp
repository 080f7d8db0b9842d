#include "plugin/loading/running_call.hpp"

#include <gtest/gtest.h>

#include <string_view>

#include "compute/trouble.hpp"

namespace bitnet::plugin {
namespace {

// As the child that probes has it, for as long as this lives.
class noting {
 public:
  noting() { notes_running_slot = true; }
  ~noting() { notes_running_slot = false; }
  noting(const noting&) = delete;
  noting& operator=(const noting&) = delete;
};

const char* seen_within_a_call() {
  const char* seen = nullptr;
  EXPECT_TRUE(compute::call("queue_submit", [&](bitnet_error*) {
    seen = running_slot;
    return BITNET_OK;
  }));
  return seen;
}

TEST(running_call, is_not_noted_where_crashes_are_not_reported) {
  EXPECT_EQ(seen_within_a_call(), nullptr);
  EXPECT_EQ(running_slot.load(), nullptr);
}

TEST(running_call, is_noted_in_the_child_that_probes) {
  const noting here;
  const char* seen = seen_within_a_call();
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(std::string_view(seen), "queue_submit");
  EXPECT_EQ(running_slot.load(), nullptr);
}

// A handle may be given back within another call, when that one fails.
TEST(running_call, ends_with_the_slot_that_ran_around_it) {
  const noting here;
  static constexpr const char* outer = "quiesce";
  const running_call around(outer);
  EXPECT_NE(seen_within_a_call(), outer);
  EXPECT_EQ(running_slot.load(), outer);
}

}  // namespace
}  // namespace bitnet::plugin
