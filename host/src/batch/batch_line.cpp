#include "batch/batch_line.hpp"

#include <fmt/format.h>

#include <utility>

#include "batch/id_set.hpp"
#include "openai/body.hpp"
#include "openai/raw_member.hpp"
#include "text/json_members.hpp"

namespace bitnet::host::batch {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string line_of(const ordered_json& content) {
  return content.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

// A line without a custom_id gets an id from its number. No custom_id collides, since none begins
// with a NUL byte and this word.
std::string name_of_line(const std::string& custom_id, uint64_t number) {
  return name_of(custom_id.empty() ? std::string(1, '\0') + fmt::format("line {}", number)
                                   : custom_id);
}

ordered_json short_error(const openai::api_error& why) {
  return {{"code", text_or_null(why.code)},
          {"message", why.message},
          {"param", text_or_null(why.param)}};
}

ordered_json response_of(const std::string& name, int status, ordered_json body) {
  return {{"status_code", status}, {"request_id", "req_" + name}, {"body", std::move(body)}};
}

std::string output_line(const std::string& name, const std::string& custom_id,
                        ordered_json response, ordered_json error) {
  return line_of({{"id", "batch_req_" + name},
                  {"custom_id", text_or_null(custom_id)},
                  {"response", std::move(response)},
                  {"error", std::move(error)}});
}

}  // namespace

read_line read_request_line(std::string_view text) {
  read_line out;
  auto content = openai::parse_object(text, "the line");
  if (!content) {
    out.fault = content.error();
    return out;
  }
  openai::field_reader in(*content);
  std::string id;
  std::string method = "POST";
  std::string url;
  in.text("custom_id", id);
  if (id.empty()) in.wrong("custom_id", "a string that is not empty");
  out.custom_id = in.error() ? "" : id;
  in.text("method", method);
  if (method != "POST") in.wrong("method", "\"POST\"");
  in.text("url", url);
  const auto to = openai::endpoint_of(url);
  if (!to) in.wrong("url", "/v1/chat/completions, /v1/completions or /v1/embeddings");
  const json* const body = in.any("body");
  if (body == nullptr || !body->is_object()) in.wrong("body", "an object");
  const auto why = in.error();
  if (why) out.fault = *why;
  if (why || !to) return out;
  out.request = request_line{id, *to, std::move((*content)["body"]),
                             std::string(openai::raw_member(text, "body"))};
  return out;
}

std::string answer_line(const std::string& custom_id, const ordered_json& body) {
  const std::string name = name_of(custom_id);
  constexpr int ok = 200;
  return output_line(name, custom_id, response_of(name, ok, body), nullptr);
}

std::string rejection_line(const std::string& custom_id, const openai::api_error& why) {
  const std::string name = name_of(custom_id);
  return output_line(name, custom_id,
                     response_of(name, why.status, {{"error", openai::error_json(why)}}),
                     short_error(why));
}

std::string fault_line(const std::string& custom_id, uint64_t number,
                       const openai::api_error& why) {
  ordered_json error = short_error(why);
  error["message"] = fmt::format("line {}: {}", number, why.message);
  error["line"] = number;
  return output_line(name_of_line(custom_id, number), custom_id, nullptr, std::move(error));
}

std::optional<written_line> read_written_line(std::string_view text) {
  if (!text.starts_with(output_prefix)) return std::nullopt;
  const json content = text::json_of(text);
  if (!content.is_object() || !content.contains("response") || !content.contains("error"))
    return std::nullopt;
  written_line out;
  out.custom_id = text::text_at(content, "custom_id");
  const json& body = text::at(text::at(content, "response"), "body");
  out.fingerprint = text::text_at(body, "system_fingerprint");
  if (!out.custom_id.empty()) return out;
  const json& number = text::at(text::at(content, "error"), "line");
  if (!number.is_number_unsigned()) return std::nullopt;
  out.number = number.get<uint64_t>();
  return out;
}

}  // namespace bitnet::host::batch
