#pragma once
// One request as a span of a trace (OpenTelemetry).

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
  std::string parent_span_id = {};  // 16; "": it begins its trace
  std::string name;                 // "POST /v1/chat/completions"
  std::chrono::system_clock::time_point began = {}, ended = {};
  bool failed = false;  // by the server's fault, or the client left
  std::vector<log_field> attributes = {};
};

// Of an answer that ended at `now`. Nothing where the client asks for no record of its trace, and
// for requests without a body, which ask for metrics, health or the page. The attributes have the
// names of OpenTelemetry's semantic conventions (http.*, gen_ai.*).
[[nodiscard]] std::optional<span> span_of(const http::access_line& line,
                                          std::chrono::system_clock::time_point now);

}  // namespace bitnet::host::trace
