#pragma once
// Spans as the body of a request of OTLP/HTTP in JSON (opentelemetry.io/docs/specs/otlp).

#include <span>
#include <string>
#include <string_view>

#include "result.hpp"
#include "trace/span.hpp"

namespace bitnet::host::trace {

// ExportTraceServiceRequest. Ids are hexadecimal digits, times and integers texts, as OTLP wants.
[[nodiscard]] std::string otlp_body(std::string_view version, std::span<const span> spans);

// Where a collector takes spans.
struct collector_address {
  std::string host;  // without brackets
  std::string port;
  std::string target;  // "/v1/traces"
  std::string named;   // "HOST:PORT", of the field Host
};

// Of "http://HOST[:PORT][/PATH]": the port is 4318 and the path /v1/traces where none is given.
// Exit code 2 for another form; https is one, since a collector on this machine forwards by TLS.
[[nodiscard]] result<collector_address> collector_of(std::string_view url);

}  // namespace bitnet::host::trace
