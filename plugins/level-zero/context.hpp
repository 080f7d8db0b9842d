#pragma once
// The context that all objects of an open device share, and the meaning of its results.

#include "device_facts.hpp"

namespace bitnet::level_zero {

struct context {
  const library& calls;
  const device_facts& facts;
  ze_context_handle_t handle = nullptr;

  context(const library& c, const device_facts& f) noexcept : calls(c), facts(f) {}
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  bitnet_status open(const sdk::reporter& report);
  // Makes a list that runs commands as they are appended. Synchronous: an append returns when done.
  bitnet_status make_list(bool synchronous, ze_command_list_handle_t& out,
                          const sdk::reporter& report) const;
  // Converts the driver's result of `call` to the contract's status.
  bitnet_status fail(const char* call, ze_result_t result, const sdk::reporter& report) const;
};

}  // namespace bitnet::level_zero
