#pragma once
// A backend whose device is lost after as many steps as its setting "steps" says, from when it is
// loaded to stay; with the setting "poisoned" its whole context. The step that finds it lost takes
// as many milliseconds as the setting "hang_ms" says. One for each plugin.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "bitnet/abi/backend.h"

namespace bitnet::losing {

inline std::atomic<int64_t> steps_left{INT64_MAX};
inline std::atomic<int64_t> hang_ms{0};
inline std::atomic<bool> poisoned{false};
inline decltype(bitnet_backend_v0::queue_submit) plain_submit;
inline decltype(bitnet_backend_v0::kv_export) plain_export;

inline bitnet_status lost(bitnet_error* err) {
  const bitnet_status status = poisoned ? BITNET_CONTEXT_POISONED : BITNET_DEVICE_LOST;
  if (err != nullptr) {
    err->code = status;
    std::snprintf(err->message, sizeof err->message, "the device fell off the bus");
  }
  return status;
}

inline bitnet_status submit(bitnet_queue* q, const bitnet_step* s, bitnet_error* err) {
  if (steps_left.fetch_sub(1) > 0) return plain_submit(q, s, err);
  std::this_thread::sleep_for(std::chrono::milliseconds(hang_ms));
  return lost(err);
}
inline bitnet_status kv_export(bitnet_queue* q, bitnet_kv_pool* pool, const uint32_t* blocks,
                               uint32_t n, void* out, uint64_t bytes, uint64_t signal,
                               bitnet_error* err) {
  return steps_left.load() > 0 ? plain_export(q, pool, blocks, n, out, bytes, signal, err)
                               : lost(err);
}

// The value of a setting; "" without it.
inline std::string setting(const bitnet_open_request& request, std::string_view key) {
  for (uint32_t i = 0; i < request.n_params; ++i)
    if (std::string_view(request.params[i].key.data, request.params[i].key.size) == key)
      return {request.params[i].value.data, request.params[i].value.size};
  return {};
}

// Makes the open table `out` such a backend's.
inline void lose(const bitnet_open_request& request, bitnet_backend_v0& out) {
  if (request.purpose == BITNET_PURPOSE_LOAD) {
    const std::string steps = setting(request, "steps");
    steps_left = steps.empty() ? INT64_MAX : std::strtoll(steps.c_str(), nullptr, 10);
    hang_ms = std::strtoll(setting(request, "hang_ms").c_str(), nullptr, 10);
    if (!setting(request, "poisoned").empty()) poisoned = true;
  }
  plain_submit = std::exchange(out.queue_submit, submit);
  plain_export = std::exchange(out.kv_export, kv_export);
}

}  // namespace bitnet::losing
