#include "trace/span.hpp"

#include <fmt/format.h>

#include <utility>

#include "http/policy.hpp"
#include "http/trace_context.hpp"
#include "text/printable.hpp"

namespace bitnet::host::trace {
namespace {

constexpr std::size_t span_id_digits = 16;
constexpr std::size_t longest_path = 200;
constexpr int first_server_error = 500;

std::vector<log_field> attributes_of(const http::access_line& line, const std::string& path) {
  std::vector<log_field> out{{"http.request.method", line.asked.method},
                             {"url.path", path},
                             {"client.address", line.asked.peer},
                             {"bitnet.request_id", line.asked.id}};
  if (line.status != 0)
    out.push_back({"http.response.status_code", static_cast<int64_t>(line.status)});
  if (!line.model.empty())
    out.push_back({"gen_ai.request.model", text::printable_ascii(line.model)});
  out.insert(out.end(), line.measured.begin(), line.measured.end());
  return out;
}

}  // namespace

std::optional<span> span_of(const http::access_line& line,
                            std::chrono::system_clock::time_point now) {
  if (line.asked.method != "POST") return std::nullopt;
  const auto parent = http::trace_context_of(line.asked.value_of("traceparent"));
  if (parent && !parent->is_sampled) return std::nullopt;
  const std::string path =
      text::printable_ascii(std::string_view(line.asked.path).substr(0, longest_path));
  span out;
  out.trace_id = parent ? std::string(parent->trace_id) : http::new_id();
  out.span_id = http::new_id().substr(0, span_id_digits);
  if (parent) out.parent_span_id = parent->parent_id;
  out.name = fmt::format("POST {}", path);
  out.ended = now;
  out.began = now - std::chrono::duration_cast<std::chrono::system_clock::duration>(line.took);
  out.failed = !line.is_whole || line.status >= first_server_error;
  out.attributes = attributes_of(line, path);
  return out;
}

}  // namespace bitnet::host::trace
