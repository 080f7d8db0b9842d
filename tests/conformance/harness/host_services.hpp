#pragma once
// The kit's own host: what bitnet/abi/host.h promises to a plugin, and a record of
// calls, their threads and times.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bitnet/abi/host.h"

namespace bitnet::conformance {

class host_services {
 public:
  explicit host_services(uint32_t width);
  ~host_services();
  host_services(const host_services&) = delete;
  host_services& operator=(const host_services&) = delete;

  const bitnet_host_v0* table() const;

  // From now on every callback is a breach: the backend was quiesced, or closed.
  void forbid(const char* since);

  // The n-th question whether to stop is answered with yes; negative: none is.
  void cancel_after(int64_t n);
  int64_t cancel_questions() const;

  // Lines that the plugin logged so far.
  uint64_t log_lines() const;
  // Parallel runs so far.
  uint64_t runs() const;

  struct state;

 private:
  // Never freed: a plugin that calls back too late must be caught, not crash.
  state* state_ = nullptr;
};

}  // namespace bitnet::conformance
