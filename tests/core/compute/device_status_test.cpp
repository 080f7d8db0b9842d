// What a device says of itself is asked, judged and kept, and never ends what asks.

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "compute/device.hpp"

namespace bitnet::compute {
namespace {

bitnet_status (*answer)(bitnet_device_status*, bitnet_error*) = nullptr;

activity ask() {
  bitnet_backend_v0 table{};
  table.device_open = [](bitnet_backend*, const bitnet_device_request*, bitnet_device** out,
                         bitnet_error*) {
    static int device;
    *out = reinterpret_cast<bitnet_device*>(&device);
    return bitnet_status{BITNET_OK};
  };
  table.device_close = [](bitnet_device*) {};
  if (answer != nullptr)
    table.device_status = [](bitnet_device*, bitnet_device_status* out, bitnet_error* err) {
      return answer(out, err);
    };
  const auto opened = device::open(table, 0, {});
  EXPECT_TRUE(opened.has_value());
  return opened->status();
}

TEST(device_status, of_a_plugin_without_the_slot_is_unknown) {
  answer = nullptr;
  EXPECT_FALSE(ask().reported);
  EXPECT_EQ(ask().rejected, "");
}

TEST(device_status, is_kept_as_it_was_reported) {
  answer = [](bitnet_device_status* s, bitnet_error*) {
    s->known = BITNET_STATUS_CLOCK | 1U << 15;
    s->clock_khz = 7;
    s->utilisation_percent = 4000;  // not reported, so it means nothing
    return bitnet_status{BITNET_OK};
  };
  const activity a = ask();
  ASSERT_TRUE(a.reported);
  EXPECT_EQ(a.reported->clock_khz, 7U);
  EXPECT_EQ(a.rejected, "");
}

TEST(device_status, that_fails_gives_its_words) {
  answer = [](bitnet_device_status* s, bitnet_error* err) {
    s->known = BITNET_STATUS_CLOCK;
    err->native_code = 28;
    std::strcpy(err->domain, "errno");
    std::strcpy(err->message, "no room");
    return bitnet_status{BITNET_INTERNAL};
  };
  EXPECT_FALSE(ask().reported);
  EXPECT_EQ(ask().rejected, "device_status() failed: no room (errno 28)");
  answer = [](bitnet_device_status*, bitnet_error*) { return bitnet_status{BITNET_UNSUPPORTED}; };
  EXPECT_FALSE(ask().reported);
  EXPECT_EQ(ask().rejected, "") << "as if there were no slot";
  answer = [](bitnet_device_status*, bitnet_error*) -> bitnet_status {
    throw std::runtime_error("out");
  };
  EXPECT_FALSE(ask().reported);
  EXPECT_EQ(ask().rejected, "device_status() lets an exception out");
}

TEST(trouble, hands_on_where_it_began) {
  const auto failed = call("queue_submit", [](bitnet_error* err) {
    err->native_code = -4;
    err->flags = BITNET_ERROR_RETRYABLE | 0x80000004U;
    std::memset(err->domain, '\n', sizeof err->domain);  // no end, and not printable
    std::strcpy(err->message, "gone");
    return bitnet_status{BITNET_DEVICE_LOST};
  });
  ASSERT_FALSE(failed.has_value());
  const failure f = in_words(failed.error(), "a step");
  EXPECT_EQ(f.status, BITNET_DEVICE_LOST);
  EXPECT_EQ(f.from.code, -4);
  std::string domain;
  for (int i = 0; i < 16; ++i) domain += "\\n";
  EXPECT_EQ(f.from.domain, domain);
  EXPECT_EQ(f.message, "a step: gone (" + domain + " -4)");
  EXPECT_EQ(failure(f).within("outside").from.code, -4) << "context does not hide it";
  EXPECT_EQ(failure(f).within("outside").from.flags, 1U) << "without bits that mean nothing";
}

TEST(trouble, keeps_flags_of_an_error_without_a_number) {
  const auto failed = call("queue_submit", [](bitnet_error* err) {
    err->flags = BITNET_ERROR_USER_FIXABLE;
    return bitnet_status{BITNET_INTERNAL};
  });
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(in_words(failed.error(), "a step").from.flags, 2U);
}

}  // namespace
}  // namespace bitnet::compute
