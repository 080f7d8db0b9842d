#pragma once
// Spans on their way to a collector.
//
// A thread of the exporter sends them by HTTP, at most 512 in a request, within a second. Adding
// never waits: where the collector takes none, the oldest of 4096 spans are dropped and counted.
// What a collector refuses for a time (429, 502, 503, 504, or no connection) is sent again, later
// each time, at most 30 s later; what it refuses for good is dropped.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "client/http_url.hpp"
#include "trace/span.hpp"

namespace bitnet::host::trace {

class span_exporter {
 public:
  // `on_trouble` is called by the exporter's thread, once for each outage, and once when it ends.
  span_exporter(client::http_url to, std::string version,
                std::function<void(const std::string&)> on_trouble);
  // Sends what is there; four seconds at most, unless the system takes longer to look up a name.
  ~span_exporter();
  span_exporter(const span_exporter&) = delete;
  span_exporter& operator=(const span_exporter&) = delete;

  // Any thread.
  void add(span one);
  [[nodiscard]] uint64_t n_sent() const;
  [[nodiscard]] uint64_t n_dropped() const;

 private:
  struct contents;
  std::unique_ptr<contents> contents_;
  std::thread thread_;
};

}  // namespace bitnet::host::trace
