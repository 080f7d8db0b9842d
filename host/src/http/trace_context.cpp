#include "http/trace_context.hpp"

#include <algorithm>

namespace bitnet::host::http {
namespace {

constexpr std::string_view traceparent_form =
    "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";

bool is_lower_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool is_zero(std::string_view id) {
  return id.find_first_not_of('0') == std::string_view::npos;
}

// The lowest bit of the last digit is the flag `sampled`.
bool is_odd_digit(char c) {
  return ((c <= '9' ? c - '0' : c - 'a' + 10) & 1) != 0;
}

}  // namespace

std::optional<trace_context> trace_context_of(std::string_view traceparent) {
  const bool has_form = std::ranges::equal(traceparent, traceparent_form, [](char c, char of_form) {
    return of_form == 'x' ? is_lower_hex(c) : c == of_form;
  });
  if (!has_form || traceparent.starts_with("ff")) return std::nullopt;
  const trace_context out{.trace_id = traceparent.substr(3, 32),
                          .parent_id = traceparent.substr(36, 16),
                          .is_sampled = is_odd_digit(traceparent.back())};
  if (is_zero(out.trace_id) || is_zero(out.parent_id)) return std::nullopt;
  return out;
}

}  // namespace bitnet::host::http
