#include "http/answer.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

namespace bitnet::host::http {
namespace {

std::string_view type_of(int status) {
  if (status == 401 || status == 403) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  if (status == 503) return "unavailable_error";
  if (status == 501) return "not_supported_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

void add_field(std::string& to, std::string_view name, std::string_view value) {
  to += name;
  to += ": ";
  for (const char c : value) to += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
  to += "\r\n";
}

}  // namespace

std::string error_body(const error_facts& facts) {
  const nlohmann::ordered_json body = {
      {"error",
       {{"message", facts.message},
        {"type", facts.type.empty() ? std::string(type_of(facts.status)) : facts.type},
        {"param", text_or_null(facts.param)},
        {"code", text_or_null(facts.code)}}}};
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

answer error_answer(const error_facts& facts) {
  return {.status = facts.status, .body = error_body(facts), .error = facts};
}

answer unavailable_answer(std::string message, unsigned retry_after_s) {
  answer out = error_answer({.status = 503, .message = std::move(message)});
  out.fields.push_back({"Retry-After", fmt::format("{}", retry_after_s)});
  return out;
}

std::string_view reason_phrase(int status) {
  constexpr struct {
    int status;
    std::string_view phrase;
  } rows[] = {{200, "OK"},
              {204, "No Content"},
              {304, "Not Modified"},
              {400, "Bad Request"},
              {401, "Unauthorized"},
              {403, "Forbidden"},
              {404, "Not Found"},
              {405, "Method Not Allowed"},
              {408, "Request Timeout"},
              {413, "Content Too Large"},
              {415, "Unsupported Media Type"},
              {417, "Expectation Failed"},
              {429, "Too Many Requests"},
              {431, "Request Header Fields Too Large"},
              {500, "Internal Server Error"},
              {501, "Not Implemented"},
              {503, "Service Unavailable"},
              {504, "Gateway Timeout"},
              {505, "HTTP Version Not Supported"}};
  for (const auto& row : rows)
    if (row.status == status) return row.phrase;
  return "";
}

std::string head_text(const head_facts& facts, const std::vector<field>& more) {
  std::string out = fmt::format("HTTP/1.{} {} {}\r\n", facts.is_1_1 ? 1 : 0, facts.status,
                                reason_phrase(facts.status));
  add_field(out, "Date",
            fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr))));
  if (!facts.content_type.empty()) add_field(out, "Content-Type", facts.content_type);
  const bool has_length =
      facts.end == body_end::length && facts.status != 204 && facts.status != 304;
  if (has_length) add_field(out, "Content-Length", fmt::format("{}", facts.length));
  if (facts.end == body_end::chunks) add_field(out, "Transfer-Encoding", "chunked");
  if (!facts.keeps_alive) add_field(out, "Connection", "close");
  if (facts.keeps_alive && !facts.is_1_1) add_field(out, "Connection", "keep-alive");
  if (std::ranges::find(more, "Cache-Control", &field::name) == more.end())
    add_field(out, "Cache-Control", "no-store");
  add_field(out, "X-Content-Type-Options", "nosniff");
  if (!facts.id.empty()) add_field(out, "X-Request-Id", facts.id);
  for (const field& one : more) add_field(out, one.name, one.value);
  return out += "\r\n";
}

}  // namespace bitnet::host::http
