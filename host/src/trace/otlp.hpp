#pragma once
// Spans as the body of a request of OTLP/HTTP in JSON (opentelemetry.io/docs/specs/otlp).

#include <span>
#include <string>
#include <string_view>

#include "client/http_url.hpp"
#include "result.hpp"
#include "trace/span.hpp"

namespace bitnet::host::trace {

// ExportTraceServiceRequest. Ids are hexadecimal digits, times and integers texts, as OTLP wants.
[[nodiscard]] std::string otlp_body(std::string_view version, std::span<const span> spans);

// Where a collector takes spans, of "http://HOST[:PORT][/PATH]": the port is 4318 and the path
// /v1/traces where none is given. Exit code 2 for another form; https is one, since a collector on
// this machine forwards by TLS.
[[nodiscard]] result<client::http_url> collector_of(std::string_view url);

}  // namespace bitnet::host::trace
