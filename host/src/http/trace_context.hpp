#pragma once
// W3C Trace Context: what a client says of the trace that its request belongs to.

#include <optional>
#include <string_view>

namespace bitnet::host::http {

// Views into the field that was read.
struct trace_context {
  std::string_view trace_id;   // 32 hexadecimal digits
  std::string_view parent_id;  // 16 hexadecimal digits: the client's span
  bool is_sampled = false;     // the client records its span
};

// Of the field traceparent: "00-<32 digits>-<16 digits>-<2 digits>" of lower-case hexadecimal
// digits, neither version ff nor an id of zeros. Nothing where it has another form.
[[nodiscard]] std::optional<trace_context> trace_context_of(std::string_view traceparent);

}  // namespace bitnet::host::http
