#include "trace/otlp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <variant>

namespace bitnet::host::trace {
namespace {

using nlohmann::ordered_json;

// SpanKind and StatusCode of opentelemetry/proto/trace/v1/trace.proto.
constexpr int kind_server = 2;
constexpr int status_error = 2;
constexpr std::string_view collector_port = "4318";
constexpr std::string_view collector_path = "/v1/traces";
constexpr unsigned highest_port = 65535;

std::string unix_ns(std::chrono::system_clock::time_point at) {
  using std::chrono::nanoseconds;
  return fmt::format("{}", std::chrono::duration_cast<nanoseconds>(at.time_since_epoch()).count());
}

ordered_json attribute_json(const log_field& of) {
  ordered_json value;
  if (const auto* text = std::get_if<std::string>(&of.value))
    value["stringValue"] = *text;
  else if (const auto* whole = std::get_if<int64_t>(&of.value))
    value["intValue"] = fmt::format("{}", *whole);
  else
    value["doubleValue"] = std::get<double>(of.value);
  return {{"key", std::string(of.name)}, {"value", std::move(value)}};
}

ordered_json span_json(const span& one) {
  ordered_json out{{"traceId", one.trace_id}, {"spanId", one.span_id}};
  if (!one.parent_span_id.empty()) out["parentSpanId"] = one.parent_span_id;
  out["name"] = one.name;
  out["kind"] = kind_server;
  out["startTimeUnixNano"] = unix_ns(one.began);
  out["endTimeUnixNano"] = unix_ns(one.ended);
  out["attributes"] = ordered_json::array();
  for (const log_field& of : one.attributes) out["attributes"].push_back(attribute_json(of));
  if (one.failed) out["status"] = {{"code", status_error}};
  return out;
}

std::unexpected<failure> no_collector(std::string_view url, std::string_view why) {
  return fail(exit_code::usage,
              fmt::format("--otlp-traces-endpoint '{}': {}; expected http://HOST[:PORT][/PATH], "
                          "such as http://127.0.0.1:4318/v1/traces",
                          url, why));
}

bool is_port(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 1 &&
         value <= highest_port;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

}  // namespace

std::string otlp_body(std::string_view version, std::span<const span> spans) {
  ordered_json all = ordered_json::array();
  for (const span& one : spans) all.push_back(span_json(one));
  const ordered_json resource{{"attributes",
                               {attribute_json({"service.name", std::string("bitnet")}),
                                attribute_json({"service.version", std::string(version)})}}};
  const ordered_json scope{{"name", "bitnet.serve"}, {"version", std::string(version)}};
  const ordered_json body{
      {"resourceSpans",
       ordered_json::array(
           {{{"resource", resource},
             {"scopeSpans",
              ordered_json::array({{{"scope", scope}, {"spans", std::move(all)}}})}}})}};
  return body.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

result<collector_address> collector_of(std::string_view url) {
  constexpr std::string_view scheme = "http://";
  if (url.starts_with("https://"))
    return no_collector(url, "TLS is left to a collector on this machine, which forwards");
  if (!url.starts_with(scheme)) return no_collector(url, "no http:// in front");
  if (!is_printable(url)) return no_collector("...", "it has blanks or bytes that are not ASCII");
  const std::string_view rest = url.substr(scheme.size());
  const std::string_view place = rest.substr(0, rest.find('/'));
  std::string_view path = rest.substr(place.size());
  if (path.empty() || path == "/") path = collector_path;

  const bool in_brackets = place.starts_with('[');
  const std::size_t end = in_brackets ? place.find(']') : place.find(':');
  if (in_brackets && end == std::string_view::npos) return no_collector(url, "no ] behind [");
  const std::string_view host = in_brackets ? place.substr(1, end - 1) : place.substr(0, end);
  const std::size_t behind = end == std::string_view::npos ? place.size() : end + in_brackets;
  std::string_view port = place.substr(behind);
  if (host.empty() || host.find('@') != std::string_view::npos)
    return no_collector(url,
                        host.empty() ? "it names no host" : "names and passwords are not sent");
  if (port.empty())
    port = collector_port;
  else if (!port.starts_with(':') || !is_port(port.substr(1)))
    return no_collector(url, "the port is no number from 1 to 65535");
  else
    port.remove_prefix(1);
  return collector_address{
      .host = std::string(host),
      .port = std::string(port),
      .target = std::string(path),
      .named = in_brackets ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port)};
}

}  // namespace bitnet::host::trace
