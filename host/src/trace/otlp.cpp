#include "trace/otlp.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "text/printable.hpp"

namespace bitnet::host::trace {
namespace {

using nlohmann::ordered_json;

// SpanKind and StatusCode of opentelemetry/proto/trace/v1/trace.proto.
constexpr int kind_server = 2;
constexpr int status_error = 2;
constexpr std::string_view collector_port = "4318";
constexpr std::string_view collector_path = "/v1/traces";
constexpr std::size_t longest_shown = 80;  // of an invalid URL

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

result<client::http_url> collector_of(std::string_view url) {
  auto out = client::parse_http_url(url, collector_port);
  if (!out) return no_collector(text::printable(url, longest_shown), out.error());
  if (out->path.empty() || out->path == "/") out->path = collector_path;
  return *std::move(out);
}

}  // namespace bitnet::host::trace
