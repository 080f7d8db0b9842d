#pragma once
// Encodes spans as the JSON body of an OTLP/HTTP request (opentelemetry.io/docs/specs/otlp).

#include <span>
#include <string>
#include <string_view>

#include "basic/result.hpp"
#include "client/http_url.hpp"
#include "trace/span.hpp"

namespace bitnet::host::trace {

// An ExportTraceServiceRequest. OTLP wants ids as hexadecimal digits, times and integers as
// strings.
[[nodiscard]] std::string otlp_body(std::string_view version, std::span<const span> spans);

// Parses a collector's address "http://HOST[:PORT][/PATH]"; default port 4318, default path
// /v1/traces. Exit code 2 for another form, https included: a collector on this machine can forward
// over TLS.
[[nodiscard]] result<client::http_url> collector_of(std::string_view url);

}  // namespace bitnet::host::trace
