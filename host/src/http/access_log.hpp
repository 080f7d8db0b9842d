#pragma once
// What the log says of an answer.

#include <string>

#include "http/connection.hpp"
#include "log/log_line.hpp"

namespace bitnet::host::http {

// One line: peer, method, path, status, bytes of the body, time, id of the request, the model
// where it is known, and the client's traceparent (W3C Trace Context) where it has that form.
// Neither query nor fields: they can hold secrets. A client that went before the end has the status
// 499, as proxies log it.
[[nodiscard]] std::string access_text(const access_line& line);
// The same as members: client, method, path, status, bytes, duration_ms, request_id, and model and
// traceparent where they are known.
[[nodiscard]] log_facts access_facts(const access_line& line);

}  // namespace bitnet::host::http
