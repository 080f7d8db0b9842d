#pragma once
// Sends spans to a collector.
//
// A thread of the exporter sends them over HTTP within a second, at most 512 per request. add()
// never waits: at most 4096 spans are queued, and beyond that the oldest is dropped and counted.
// After a temporary failure (429, 502, 503, 504, or no connection) it sends again, after growing
// pauses of at most 30 s; spans that the collector rejects for good are dropped.

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
  // The exporter's thread calls `on_trouble` once for each outage, and once when it ends.
  span_exporter(client::http_url to, std::string version,
                std::function<void(const std::string&)> on_trouble);
  // Sends the queued spans; takes four seconds at most, unless a name lookup takes longer.
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
