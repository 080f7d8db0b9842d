// What a minor added is sent to those plugins only that agreed on it.

#include <gtest/gtest.h>

#include "compute/steps.hpp"

namespace bitnet::compute {
namespace {

bitnet_prepare_request sent{};

template <class Object>
bitnet_status give(Object** out) {
  static int object;
  *out = reinterpret_cast<Object*>(&object);
  return BITNET_OK;
}

// A plugin that agreed on this minor, and keeps what it was asked to prepare.
bitnet_backend_v0 plugin_of(uint32_t minor) {
  bitnet_backend_v0 out{};
  out.abi_minor = minor;
  out.device_open = [](bitnet_backend*, const bitnet_device_request*, bitnet_device** to,
                       bitnet_error*) { return give(to); };
  out.device_close = [](bitnet_device*) {};
  out.program_build = [](bitnet_device*, const bitnet_build_request*, bitnet_program** to,
                         bitnet_error*) { return give(to); };
  out.program_destroy = [](bitnet_program*) {};
  out.program_bind = [](bitnet_program*, const bitnet_bind_request*, bitnet_binding** to,
                        bitnet_error*) { return give(to); };
  out.binding_destroy = [](bitnet_binding*) {};
  out.binding_prepare = [](bitnet_binding*, const bitnet_prepare_request* r, bitnet_error*) {
    sent = *r;
    return bitnet_status{BITNET_OK};
  };
  return out;
}

TEST(minors, sequences_are_prepared_from_minor_2_on) {
  for (const uint32_t minor : {1U, 2U}) {
    SCOPED_TRACE(minor);
    const bitnet_backend_v0 table = plugin_of(minor);
    const graph none;
    const bitnet_program_options bounds{};
    const auto on = device::open(table, 0, {});
    ASSERT_TRUE(on.has_value());
    const auto built = program::build(*on, none, {}, bounds);
    ASSERT_TRUE(built.has_value());
    auto bound = binding::make(*on, *built, none, bounds, nullptr);
    ASSERT_TRUE(bound.has_value());
    ASSERT_TRUE(bound->prepare(8, 4, 3, 77).has_value());
    EXPECT_EQ(sent.struct_size, sizeof sent);
    EXPECT_EQ(sent.n_tokens, 8U);
    EXPECT_EQ(sent.n_outputs, 4U);
    EXPECT_EQ(sent.cancel_token, 77U);
    EXPECT_EQ(sent.n_sequences, minor < 2 ? 0U : 3U);
  }
}

}  // namespace
}  // namespace bitnet::compute
