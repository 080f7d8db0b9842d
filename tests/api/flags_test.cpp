// bitnet_error.flags: what an error of each status says about retries and about its user.

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "api/edge.hpp"

namespace bitnet::api {
namespace {

constexpr uint32_t retryable = 1, user_fixable = 2;  // numbers of the ABI

bitnet_error blank() {
  bitnet_error e{};
  e.struct_size = sizeof e;
  return e;
}

TEST(flags, belong_to_the_status) {
  const struct {
    const char* name;
    bitnet_status status;
    uint32_t flags;
  } rows[] = {{"OK", 0, 0},
              {"INVALID_ARGUMENT", 1, 0},
              {"UNSUPPORTED", 2, 0},
              {"UNAVAILABLE", 3, user_fixable},
              {"INCOMPATIBLE", 4, user_fixable},
              {"OUT_OF_MEMORY", 5, retryable | user_fixable},
              {"OUT_OF_DEVICE_MEMORY", 6, retryable | user_fixable},
              {"BAD_DATA", 7, user_fixable},
              {"DEVICE_LOST", 8, retryable},
              {"CONTEXT_POISONED", 9, 0},
              {"CANCELLED", 10, 0},
              {"TIMEOUT", 11, retryable},
              {"NOT_FOUND", 12, user_fixable},
              {"REJECTED", 13, user_fixable},
              {"CONTEXT_FULL", 14, user_fixable},
              {"INTERNAL", 15, 0},
              {"IO", 16, user_fixable},
              {"FORBIDDEN", 17, user_fixable},
              {"BUSY", 18, retryable},
              {"not given yet", 19, 0},
              {"an author's own", BITNET_PRIVATE_STATUS, 0}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    bitnet_error e = blank();
    EXPECT_EQ(report(&e, "here", {row.status, "why"}), row.status);
    EXPECT_EQ(e.flags, row.flags);
    e = blank();
    EXPECT_EQ(report_plainly(&e, "here", row.status, "why"), row.status);
    EXPECT_EQ(e.flags, row.flags) << "without memory";
  }
}

TEST(flags, of_a_plugin_are_added) {
  const struct {
    bitnet_status status;
    uint32_t of_plugin, flags;
  } rows[] = {{BITNET_INTERNAL, retryable, retryable},
              {BITNET_BUSY, user_fixable, retryable | user_fixable},
              {BITNET_UNAVAILABLE, user_fixable, user_fixable},
              {BITNET_PRIVATE_STATUS, retryable | user_fixable, retryable | user_fixable}};
  for (const auto& row : rows) {
    bitnet_error e = blank();
    const failure why{row.status, "why", {"driver", -4, row.of_plugin}};
    report(&e, "here", failure(why).within("outside"));
    EXPECT_EQ(e.flags, row.flags) << row.status;
    EXPECT_EQ(e.native_code, -4);
  }
}

TEST(flags, are_those_of_the_exception) {
  bitnet_error e = blank();
  EXPECT_EQ(guarded(&e, "here", []() -> result<void> { throw std::bad_alloc(); }),
            BITNET_OUT_OF_MEMORY);
  EXPECT_EQ(e.flags, retryable | user_fixable);
  e = blank();
  e.flags = retryable;  // of the call before
  EXPECT_EQ(guarded(&e, "here", []() -> result<void> { throw std::runtime_error("why"); }),
            BITNET_INTERNAL);
  EXPECT_EQ(e.flags, 0U);
}

}  // namespace
}  // namespace bitnet::api
