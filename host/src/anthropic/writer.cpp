#include "anthropic/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "anthropic/request.hpp"
#include "openai/answer_blocks.hpp"

namespace bitnet::host::anthropic {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using openai::answer_blocks;
using openai::block;
using openai::block_event;
using openai::block_kind;
using openai::line_of;

std::string event(const char* type, const ordered_json& content) {
  ordered_json out = {{"type", type}};
  out.update(content);
  return fmt::format("event: {}\ndata: {}\n\n", type, line_of(out));
}

// `text` of a call is a JSON object that keeps the model's raw text: see text_of_content().
ordered_json content_of(const block& of, const std::string& text) {
  if (of.kind == block_kind::call)
    return {{"type", "tool_use"},
            {"id", of.id},
            {"caller", {{"type", "direct"}}},
            {"name", of.name},
            {"input", ordered_json::object()}};
  if (of.kind == block_kind::thinking)
    return {{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
  return {{"type", "text"}, {"text", text}, {"citations", nullptr}};
}

// Has each member that the API's description requires; null if the server has no value.
ordered_json usage_of(uint64_t n_input, ordered_json cached, uint64_t n_output,
                      uint64_t n_thinking) {
  return {{"input_tokens", n_input},
          {"cache_creation", nullptr},
          {"cache_creation_input_tokens", nullptr},
          {"cache_read_input_tokens", std::move(cached)},
          {"output_tokens", n_output},
          {"output_tokens_details", {{"thinking_tokens", n_thinking}}},
          {"inference_geo", nullptr},
          {"server_tool_use", nullptr},
          {"service_tier", nullptr}};
}

ordered_json delta_of(block_kind kind, const std::string& piece) {
  if (kind == block_kind::call) return {{"type", "input_json_delta"}, {"partial_json", piece}};
  if (kind == block_kind::thinking) return {{"type", "thinking_delta"}, {"thinking", piece}};
  return {{"type", "text_delta"}, {"text", piece}};
}

class writer final : public openai::answer_writer {
 public:
  writer(const openai::request& from, openai::object_facts about, const openai::prompt& asked,
         answer_blocks blocks, const bitnet_model* with)
      : from_(from),
        about_(std::move(about)),
        n_prompt_(asked.ids.size()),
        blocks_(std::move(blocks)),
        answer_(1, with) {}

  [[nodiscard]] std::string begin() override;
  [[nodiscard]] openai::parsed<std::string> take(std::size_t prompt,
                                                 const bitnet_event& e) override;
  [[nodiscard]] openai::parsed<std::string> end(const openai::timings& took) override;
  [[nodiscard]] std::string fail(const openai::api_error& why) override {
    return event("error", anthropic::error_body(why));
  }

 private:
  // The message without its content.
  [[nodiscard]] ordered_json message(ordered_json usage) const;
  [[nodiscard]] std::string with_repeated(std::string object) const;
  [[nodiscard]] ordered_json usage() const;
  void stop_by(const bitnet_event& end);
  [[nodiscard]] std::string text_of(const std::vector<block_event>& events) const;
  [[nodiscard]] std::string content() const;

  const openai::request& from_;
  openai::object_facts about_;
  std::size_t n_prompt_;
  uint64_t n_thinking_ = 0;  // tokens of thinking
  answer_blocks blocks_;
  openai::collected_answer answer_;
  ordered_json stop_reason_ = nullptr, stop_sequence_ = nullptr;
};

ordered_json writer::message(ordered_json usage) const {
  return {{"id", about_.id},
          {"type", "message"},
          {"role", "assistant"},
          {"model", about_.model},
          {"container", nullptr},
          {"stop_reason", stop_reason_},
          {"stop_sequence", stop_sequence_},
          {"stop_details", nullptr},
          {"usage", std::move(usage)}};
}

// Appends members to `object`.
std::string with_members(std::string object, std::string_view members) {
  if (!members.empty()) object.insert(object.size() - 1, fmt::format(",{}", members));
  return object;
}

std::string writer::with_repeated(std::string object) const {
  return with_members(std::move(object), from_.repeated);
}

// Prompt tokens known from an earlier request count as cache reads, not as input.
ordered_json writer::usage() const {
  const openai::usage& used = answer_.used();
  return usage_of(used.prompt - std::min(used.prompt, used.cached), used.cached, used.completion,
                  n_thinking_);
}

std::string writer::begin() {
  if (!from_.stream) return "";
  const std::string start = with_repeated(
      with_members(line_of(message(usage_of(n_prompt_, nullptr, 0, 0))), R"("content":[])"));
  return fmt::format(
             "event: message_start\ndata: {{\"type\":\"message_start\",\"message\":{}}}\n\n",
             start) +
         event("ping", ordered_json::object());
}

void writer::stop_by(const bitnet_event& end) {
  const std::vector<std::string>& stops = from_.how.stops;
  if (end.stop_reason == BITNET_STOP_STRING && end.stop_index < stops.size()) {
    stop_reason_ = "stop_sequence";
    stop_sequence_ = stops[end.stop_index];
  } else if (end.stop_reason == BITNET_STOP_CONTEXT) {
    stop_reason_ = "model_context_window_exceeded";
  } else if (end.stop_reason == BITNET_STOP_LENGTH) {
    stop_reason_ = "max_tokens";
  } else {
    stop_reason_ = blocks_.has_call() ? "tool_use" : "end_turn";
  }
}

std::string writer::text_of(const std::vector<block_event>& events) const {
  std::string out;
  if (!from_.stream) return out;
  for (const block_event& e : events) {
    const block& of = blocks_.blocks()[e.index];
    if (e.what == block_event::step::begin)
      out +=
          event("content_block_start", {{"index", e.index}, {"content_block", content_of(of, "")}});
    else if (e.what == block_event::step::piece)
      out +=
          event("content_block_delta", {{"index", e.index}, {"delta", delta_of(of.kind, e.piece)}});
    else
      out += event("content_block_stop", {{"index", e.index}});
  }
  return out;
}

openai::parsed<std::string> writer::take(std::size_t /*prompt*/, const bitnet_event& e) {
  answer_.take(e, false);
  const bool is_end = e.kind == BITNET_EVENT_END;
  if (!is_end && e.kind != BITNET_EVENT_TEXT) return "";
  if (!is_end && e.token >= 0 && blocks_.is_thinking()) ++n_thinking_;
  const auto events = is_end ? blocks_.finish() : blocks_.take({e.text.data, e.text.size});
  if (!events) return std::unexpected(events.error());
  if (is_end) stop_by(e);
  return text_of(*events);
}

// The list of blocks; the input of each call keeps the model's raw text.
std::string writer::content() const {
  std::string out = "[";
  for (const block& one : blocks_.blocks()) {
    if (out.size() > 1) out += ',';
    std::string text = line_of(content_of(one, one.text));
    constexpr std::string_view nothing = "{}}";
    // A call that was cut off has no complete input.
    if (one.kind == block_kind::call && json::accept(one.text))
      text.replace(text.size() - nothing.size(), nothing.size(), one.text + "}");
    out += text;
  }
  return out + "]";
}

openai::parsed<std::string> writer::end(const openai::timings& took) {
  if (!from_.stream) {
    ordered_json out = message(usage());
    out["timings"] = took.json();
    return with_repeated(with_members(line_of(out), fmt::format(R"("content":{})", content())));
  }
  return event("message_delta", {{"delta",
                                  {{"container", nullptr},
                                   {"stop_reason", stop_reason_},
                                   {"stop_sequence", stop_sequence_},
                                   {"stop_details", nullptr}}},
                                 {"usage", usage()},
                                 {"timings", took.json()}}) +
         event("message_stop", ordered_json::object());
}

openai::parsed<std::unique_ptr<openai::answer_writer>> open_writer(
    const openai::request& from, openai::object_facts about,
    std::span<const openai::prompt> prompts, const bitnet_model* with) {
  auto blocks = answer_blocks::open(prompts.front(), fmt::format("toolu_{}_", about.id));
  if (!blocks) return std::unexpected(blocks.error());
  return std::make_unique<writer>(from, std::move(about), prompts.front(), *std::move(blocks),
                                  with);
}

ordered_json count_body(std::size_t n_tokens) {
  return {{"input_tokens", n_tokens}};
}

}  // namespace

const char* error_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 408:
    case 504:
      return "timeout_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

// Clients that shorten a conversation look for "prompt is too long".
ordered_json error_body(const openai::api_error& why) {
  std::string message = why.message;
  if (why.n_context != 0)
    message =
        fmt::format("prompt is too long: {} tokens > {} maximum", why.n_prompt, why.n_context);
  ordered_json out = {{"type", "error"},
                      {"error", {{"type", error_type(why.status)}, {"message", message}}}};
  if (!why.param.empty()) out["error"]["param"] = why.param;
  if (!why.code.empty()) out["error"]["code"] = why.code;
  return out;
}

ordered_json error_body(const openai::api_error& why, std::string_view request_id) {
  ordered_json out = anthropic::error_body(why);
  out["request_id"] = request_id;
  return out;
}

const openai::api_form& form() {
  static const openai::api_form out{
      openai::endpoint::chat, "msg_", parse_request, open_writer, error_body, count_body};
  return out;
}

const openai::api_form& count_form() {
  static const openai::api_form out{
      openai::endpoint::chat, "msg_", parse_count, open_writer, error_body, count_body};
  return out;
}

}  // namespace bitnet::host::anthropic
