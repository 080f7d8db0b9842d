#include "responses/writer.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "openai/answer_blocks.hpp"
#include "responses/request.hpp"
#include "responses/text_logprobs.hpp"

namespace bitnet::host::responses {
namespace {

using nlohmann::ordered_json;
using openai::answer_blocks;
using openai::block;
using openai::block_event;
using openai::block_kind;
using openai::line_of;

int64_t seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

const char* prefix_of(block_kind kind) {
  return kind == block_kind::call ? "fc" : kind == block_kind::thinking ? "rs" : "msg";
}

// The prefix of the block's event names.
const char* event_prefix(block_kind kind) {
  return kind == block_kind::call       ? "response.function_call_arguments"
         : kind == block_kind::thinking ? "response.reasoning_text"
                                        : "response.output_text";
}

ordered_json part_of(const block& of, const std::string& text, ordered_json logprobs) {
  if (of.kind == block_kind::thinking) return {{"type", "reasoning_text"}, {"text", text}};
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", ordered_json::array()},
          {"logprobs", std::move(logprobs)}};
}

class writer final : public openai::answer_writer {
 public:
  writer(const openai::request& from, openai::object_facts about, answer_blocks blocks,
         const bitnet_model* with)
      : from_(from),
        about_(std::move(about)),
        blocks_(std::move(blocks)),
        answer_(1, with),
        with_(with) {}

  [[nodiscard]] std::string begin() override {
    if (!from_.stream) return "";
    std::string out = state_event("response.created");
    return out += state_event("response.in_progress");
  }
  [[nodiscard]] openai::parsed<std::string> take(std::size_t prompt,
                                                 const bitnet_event& e) override;
  [[nodiscard]] openai::parsed<std::string> end(const openai::timings& took) override;
  [[nodiscard]] std::string fail(const openai::api_error& why) override;

 private:
  [[nodiscard]] std::string event(const char* type, const ordered_json& content);
  [[nodiscard]] std::string state_event(const char* type);
  // The response so far, as text.
  [[nodiscard]] std::string object() const;
  [[nodiscard]] std::string text_of(const std::vector<block_event>& events);
  void note_token(const bitnet_event& e);
  [[nodiscard]] std::string begin_of(std::size_t index);
  [[nodiscard]] std::string end_of(std::size_t index);
  [[nodiscard]] std::string item_id(std::size_t index) const {
    return fmt::format("{}_{}_{}", prefix_of(blocks_.blocks()[index].kind), about_.id, index);
  }
  [[nodiscard]] ordered_json item(std::size_t index, const char* status) const;
  // {"item_id", "output_index"}, and "content_index" if the block has parts.
  [[nodiscard]] ordered_json place(std::size_t index) const;

  const openai::request& from_;
  openai::object_facts about_;
  answer_blocks blocks_;
  openai::collected_answer answer_;
  const bitnet_model* with_;
  text_logprobs logprobs_;
  uint64_t sequence_ = 0;    // number of the stream's next event
  uint64_t n_thinking_ = 0;  // tokens
  const char* status_ = "in_progress";
  ordered_json error_ = nullptr;         // reason of a failure
  ordered_json timings_ = nullptr;       // set at the end
  ordered_json completed_at_ = nullptr;  // seconds since 1970; set on completion
};

std::string writer::event(const char* type, const ordered_json& content) {
  ordered_json out = {{"type", type}, {"sequence_number", sequence_++}};
  out.update(content);
  return fmt::format("event: {}\ndata: {}\n\n", type, line_of(out));
}

std::string writer::state_event(const char* type) {
  return fmt::format(
      "event: {0}\ndata: {{\"type\":\"{0}\",\"sequence_number\":{1},\"response\":{2}}}\n\n", type,
      sequence_++, object());
}

std::string writer::object() const {
  const std::string_view status = status_;
  const bool has_ended = status != "in_progress";
  const bool is_whole = status == "completed";
  ordered_json output = ordered_json::array();
  if (has_ended)
    for (std::size_t i = 0; i < blocks_.blocks().size(); ++i)
      output.push_back(item(i, is_whole ? "completed" : "incomplete"));
  ordered_json out = {{"id", about_.id},
                      {"object", "response"},
                      {"created_at", about_.created},
                      {"completed_at", completed_at_},
                      {"status", status_},
                      {"background", false},
                      {"error", error_},
                      {"incomplete_details", nullptr},
                      {"max_tool_calls", nullptr},
                      {"model", about_.model},
                      {"output", std::move(output)},
                      {"previous_response_id", nullptr},
                      {"service_tier", "default"},
                      {"store", false},
                      {"truncation", "disabled"},
                      {"usage", nullptr}};
  if (status == "incomplete") out["incomplete_details"] = {{"reason", "max_output_tokens"}};
  if (!timings_.is_null()) {
    const openai::usage& used = answer_.used();
    out["usage"] = {{"input_tokens", used.prompt},
                    {"input_tokens_details", {{"cached_tokens", used.cached}}},
                    {"output_tokens", used.completion},
                    {"output_tokens_details", {{"reasoning_tokens", n_thinking_}}},
                    {"total_tokens", used.prompt + used.completion}};
    out["timings"] = timings_;
    out["system_fingerprint"] = about_.fingerprint;
  }
  std::string text = line_of(out);
  text.insert(text.size() - 1, "," + from_.repeated);
  return text;
}

ordered_json writer::item(std::size_t index, const char* status) const {
  const block& of = blocks_.blocks()[index];
  const bool is_whole = status != std::string_view("in_progress");
  if (of.kind == block_kind::call)
    return {{"type", "function_call"},
            {"id", item_id(index)},
            {"call_id", of.id},
            {"name", of.name},
            {"arguments", is_whole ? of.text : ""},
            {"status", status}};
  ordered_json parts = ordered_json::array();
  if (is_whole) parts.push_back(part_of(of, of.text, logprobs_.of_block(index)));
  if (of.kind == block_kind::thinking)
    return {{"type", "reasoning"},
            {"id", item_id(index)},
            {"summary", ordered_json::array()},
            {"content", std::move(parts)},
            {"status", status}};
  return {{"type", "message"},
          {"id", item_id(index)},
          {"role", "assistant"},
          {"content", std::move(parts)},
          {"status", status}};
}

ordered_json writer::place(std::size_t index) const {
  ordered_json out = {{"item_id", item_id(index)}, {"output_index", index}};
  if (blocks_.blocks()[index].kind != block_kind::call) out["content_index"] = 0;
  return out;
}

std::string writer::begin_of(std::size_t index) {
  std::string out = event("response.output_item.added",
                          {{"output_index", index}, {"item", item(index, "in_progress")}});
  const block& of = blocks_.blocks()[index];
  if (of.kind == block_kind::call) return out;
  ordered_json content = place(index);
  content["part"] = part_of(of, "", ordered_json::array());
  return out + event("response.content_part.added", content);
}

std::string writer::end_of(std::size_t index) {
  const block& of = blocks_.blocks()[index];
  const bool is_call = of.kind == block_kind::call;
  ordered_json whole = place(index);
  if (is_call) whole["name"] = of.name;
  whole[is_call ? "arguments" : "text"] = of.text;
  if (of.kind == block_kind::text) whole["logprobs"] = logprobs_.of_block(index);
  std::string out = event(fmt::format("{}.done", event_prefix(of.kind)).c_str(), whole);
  if (!is_call) {
    ordered_json content = place(index);
    content["part"] = part_of(of, of.text, logprobs_.of_block(index));
    out += event("response.content_part.done", content);
  }
  return out + event("response.output_item.done",
                     {{"output_index", index}, {"item", item(index, "completed")}});
}

std::string writer::text_of(const std::vector<block_event>& events) {
  std::string out;
  logprobs_.take(events, blocks_.blocks(), blocks_.is_thinking());
  if (!from_.stream) return out;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const block_event& e = events[i];
    if (e.what == block_event::step::begin) {
      out += begin_of(e.index);
    } else if (e.what == block_event::step::end) {
      out += end_of(e.index);
    } else {
      const block_kind kind = blocks_.blocks()[e.index].kind;
      ordered_json content = place(e.index);
      content["delta"] = e.piece;
      if (kind == block_kind::text) content["logprobs"] = logprobs_.of_event(i);
      out += event(fmt::format("{}.delta", event_prefix(kind)).c_str(), content);
    }
  }
  return out;
}

// The token that ends an answer has no text.
void writer::note_token(const bitnet_event& e) {
  if (blocks_.is_thinking()) ++n_thinking_;
  const auto& all = answer_.choices()[0].logprobs;
  if (!all.empty() && bitnet_token_ends_generation(with_, e.token) == 0) logprobs_.add(all.back());
}

openai::parsed<std::string> writer::take(std::size_t /*prompt*/, const bitnet_event& e) {
  answer_.take(e, from_.how.logprobs);
  if (e.kind == BITNET_EVENT_END) {
    status_ = answer_.choices()[0].finish_reason == std::string_view("length") ? "incomplete"
                                                                               : "completed";
    const auto events = blocks_.finish();
    if (!events) return std::unexpected(events.error());
    return text_of(*events);
  }
  if (e.kind != BITNET_EVENT_TEXT) return "";
  if (e.token >= 0) note_token(e);
  const auto events = blocks_.take({e.text.data, e.text.size});
  if (!events) return std::unexpected(events.error());
  return text_of(*events);
}

openai::parsed<std::string> writer::end(const openai::timings& took) {
  timings_ = took.json();
  if (status_ == std::string_view("completed")) completed_at_ = seconds_now();
  if (!from_.stream) return object();
  return state_event(status_ == std::string_view("incomplete") ? "response.incomplete"
                                                               : "response.completed");
}

std::string writer::fail(const openai::api_error& why) {
  status_ = "failed";
  error_ = {{"code", "server_error"}, {"message", why.message}};
  return state_event("response.failed");
}

openai::parsed<std::unique_ptr<openai::answer_writer>> open_writer(
    const openai::request& from, openai::object_facts about,
    std::span<const openai::prompt> prompts, const bitnet_model* with) {
  auto blocks = answer_blocks::open(prompts.front(), fmt::format("call_{}_", about.id));
  if (!blocks) return std::unexpected(blocks.error());
  return std::make_unique<writer>(from, std::move(about), *std::move(blocks), with);
}

// An error in the chat made from the body is reported for the member `input`.
ordered_json error_of_input(const openai::api_error& why) {
  openai::api_error named = why;
  if (why.param == "messages" || why.param.starts_with("messages[")) named.param = "input";
  return openai::error_body(named);
}

ordered_json count_body(std::size_t n_tokens) {
  return {{"object", "response.input_tokens"}, {"input_tokens", n_tokens}};
}

}  // namespace

const openai::api_form& form() {
  static const openai::api_form out{openai::endpoint::chat, "resp_",   parse_request, open_writer,
                                    error_of_input,         count_body};
  return out;
}

}  // namespace bitnet::host::responses
