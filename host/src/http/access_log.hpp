#pragma once
// The log's line about an answer.

#include <string>

#include "http/connection.hpp"
#include "log/log_line.hpp"

namespace bitnet::host::http {

// One line: peer, method, path, status, bytes of the body, time, request id, the model if known,
// and the client's traceparent (W3C Trace Context) if it is valid. It has neither query nor header
// fields, which may hold secrets. If the client left early, the status is 499, as proxies log it.
[[nodiscard]] std::string access_text(const access_line& line);
// The same facts as JSON members: client, method, path, status, bytes, duration_ms, request_id, and
// model and traceparent if known.
[[nodiscard]] log_facts access_facts(const access_line& line);

}  // namespace bitnet::host::http
