#pragma once
// W3C Trace Context: the trace that a client's request belongs to.

#include <optional>
#include <string_view>

namespace bitnet::host::http {

// Views into the parsed field.
struct trace_context {
  std::string_view trace_id;   // 32 hexadecimal digits
  std::string_view parent_id;  // 16 hexadecimal digits: the client's span
  bool is_sampled = false;     // the client records its span
};

// Parses the field traceparent: "00-<32 digits>-<16 digits>-<2 digits>" in lower-case hexadecimal.
// Version ff, ids of zeros and other forms give nothing.
[[nodiscard]] std::optional<trace_context> trace_context_of(std::string_view traceparent);

}  // namespace bitnet::host::http
