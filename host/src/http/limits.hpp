#pragma once
// The bytes, time and connections that a client may use. Each limit is checked before anything is
// computed for a request.

#include <chrono>
#include <cstddef>

namespace bitnet::host::http {

struct limits {
  std::size_t head_bytes = std::size_t{32} * 1024;         // request line and fields; more: 431
  std::size_t fields = 100;                                // header fields; more: 431
  std::size_t body_bytes = std::size_t{16} * 1024 * 1024;  // of one decoded body; more: 413
  std::size_t all_body_bytes = std::size_t{256} * 1024 * 1024;  // of all bodies; more: 503
  std::size_t ahead_bytes = std::size_t{64} * 1024;    // of requests queued after the running one
  std::size_t output_bytes = std::size_t{256} * 1024;  // of a stream, sent and not taken
  // If there are more, the server closes the one that has waited longest for a request; if all are
  // busy, a new one gets 503.
  std::size_t connections = 2048;
  std::chrono::milliseconds head_time{10'000};   // from the first byte, or the accept, to the head
  std::chrono::milliseconds body_time{60'000};   // from the head to the end of the body
  std::chrono::milliseconds idle_time{75'000};   // between two requests of a connection
  std::chrono::milliseconds write_time{30'000};  // in which the client takes no byte
  std::chrono::milliseconds linger_time{1'000};  // to drain input after the last answer
  std::chrono::milliseconds ping_time{15'000};   // after it, a silent stream of events is pinged
};

}  // namespace bitnet::host::http
