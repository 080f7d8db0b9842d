#pragma once
// A request as a span of a trace (OpenTelemetry).

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "http/connection.hpp"
#include "log/log_line.hpp"

namespace bitnet::host::trace {

struct span {
  std::string trace_id;             // 32 hexadecimal digits
  std::string span_id;              // 16
  std::string parent_span_id = {};  // 16; "": the trace begins here
  std::string name;                 // "POST /v1/chat/completions"
  std::chrono::system_clock::time_point began = {}, ended = {};
  bool failed = false;  // the server failed, or the client left
  std::vector<log_field> attributes = {};
};

// The span of an answer that ended at `now`. Nothing if the client's trace is not sampled, or for
// requests without a body, such as metrics, health and the page. Attributes are named by
// OpenTelemetry's semantic conventions (http.*, gen_ai.*).
[[nodiscard]] std::optional<span> span_of(const http::access_line& line,
                                          std::chrono::system_clock::time_point now);

}  // namespace bitnet::host::trace
