#include "http/access_log.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "http/trace_context.hpp"
#include "text/printable.hpp"

namespace bitnet::host::http {
namespace {

constexpr int client_closed = 499;

double ms_of(const access_line& line) {
  return std::chrono::duration<double, std::milli>(line.took).count();
}

int logged_status(const access_line& line) {
  return line.is_whole ? line.status : client_closed;
}

std::string_view logged_path(const access_line& line) {
  constexpr std::size_t longest = 200;
  return std::string_view(line.asked.path).substr(0, longest);
}

}  // namespace

std::string access_text(const access_line& line) {
  std::string out = fmt::format("{} {} {} {} {} bytes {:.1f} ms id={}", line.asked.peer,
                                text::printable_ascii(line.asked.method),
                                text::printable_ascii(logged_path(line)), logged_status(line),
                                line.body_bytes, ms_of(line), line.asked.id);
  if (!line.model.empty()) out += fmt::format(" model={}", text::printable_ascii(line.model, " "));
  const std::string_view trace = line.asked.value_of("traceparent");
  if (trace_context_of(trace)) out += fmt::format(" traceparent={}", trace);
  return out;
}

log_facts access_facts(const access_line& line) {
  constexpr double per_ms = 1000;  // rounds to microseconds
  log_facts out{.message = "answered",
                .fields = {{"client", line.asked.peer},
                           {"method", line.asked.method},
                           {"path", std::string(logged_path(line))},
                           {"status", int64_t{logged_status(line)}},
                           {"bytes", static_cast<int64_t>(line.body_bytes)},
                           {"duration_ms", std::round(ms_of(line) * per_ms) / per_ms},
                           {"request_id", line.asked.id}}};
  if (!line.model.empty()) out.fields.push_back({"model", std::string(line.model)});
  const std::string_view trace = line.asked.value_of("traceparent");
  if (trace_context_of(trace)) out.fields.push_back({"traceparent", std::string(trace)});
  return out;
}

}  // namespace bitnet::host::http
