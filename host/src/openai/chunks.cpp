#include "openai/chunks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace bitnet::host::openai {
namespace {

using nlohmann::ordered_json;

std::string event_of(const ordered_json& content) {
  return fmt::format("data: {}\n\n",
                     content.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

std::string text_of(bitnet_str text) {
  return {text.data, text.size};
}

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

// {"tool_calls": [{"index": ..., ...}]}
ordered_json call_delta(uint32_t index, ordered_json function) {
  ordered_json call = {{"index", index}};
  call["function"] = std::move(function);
  return {{"tool_calls", ordered_json::array({std::move(call)})}};
}

ordered_json call_begin(const bitnet_answer_event& e) {
  ordered_json out = call_delta(e.call, {{"name", text_of(e.name)}, {"arguments", ""}});
  out["tool_calls"][0]["id"] = text_of(e.id);
  out["tool_calls"][0]["type"] = "function";
  return out;
}

// The event's addition to the message; null: none.
ordered_json delta_of(const bitnet_answer_event& e) {
  switch (e.kind) {
    case BITNET_ANSWER_REASONING:
      return {{"reasoning_content", text_of(e.text)}};
    case BITNET_ANSWER_CONTENT:
    case BITNET_ANSWER_MALFORMED:
      return {{"content", text_of(e.text)}};
    case BITNET_ANSWER_CALL_BEGIN:
      return call_begin(e);
    case BITNET_ANSWER_CALL_ARGUMENTS:
      return call_delta(e.call, {{"arguments", text_of(e.text)}});
    default:
      return nullptr;
  }
}

}  // namespace

parsed<std::unique_ptr<chunk_writer>> chunk_writer::open(const request& from, object_facts about,
                                                         std::span<const prompt> prompts,
                                                         const bitnet_model* with) {
  std::unique_ptr<chunk_writer> out(new chunk_writer(from, std::move(about)));
  if (!prompts.empty()) out->unbound_ = prompts.front().unbound;
  out->answers_.assign(prompts.size(), collected_answer(from.how.n_choices, with));
  for (const prompt& one : prompts)
    if (auto ok = out->add_choices(one); !ok) return std::unexpected(ok.error());
  return out;
}

parsed<void> chunk_writer::add_choices(const prompt& of) {
  std::vector<choice_state> row(from_.how.n_choices);
  for (choice_state& one : row) {
    one.index = n_choices_++;
    if (!of.chat) continue;
    library_error err;
    bitnet_answer* opened = nullptr;
    const std::string ids = fmt::format("call_{}_{}_", about_.id, one.index);
    const bitnet_status status = bitnet_chat_answer(of.chat.get(), ids.c_str(), &opened, &err);
    if (status != BITNET_OK) return std::unexpected(error_of(BITNET_OUT_OF_MEMORY, err.message));
    one.parts.reset(opened);
  }
  choices_.push_back(std::move(row));
  return {};
}

std::string chunk_writer::chunk_of(ordered_json choices) const {
  ordered_json out = {
      {"id", about_.id},
      {"object", from_.to == endpoint::chat ? "chat.completion.chunk" : "text_completion"},
      {"created", about_.created},
      {"model", about_.model},
      {"choices", std::move(choices)},
      {"system_fingerprint", about_.fingerprint}};
  if (from_.include_usage) out["usage"] = nullptr;
  add_unbound(out, unbound_);
  return event_of(out);
}

// Log probabilities of tokens whose text has come. END takes back the token that ends the answer.
ordered_json chunk_writer::new_logprobs(choice_state& of, const choice& said) const {
  if (!from_.how.logprobs || of.n_logprobs >= said.logprobs.size()) return nullptr;
  choice part;
  part.logprobs.assign(said.logprobs.begin() + static_cast<std::ptrdiff_t>(of.n_logprobs),
                       said.logprobs.end());
  ordered_json out = logprobs_json(from_.to, part);
  if (out.contains("text_offset"))
    for (ordered_json& at : out["text_offset"]) at = at.get<uint64_t>() + of.n_characters;
  for (const token_logprob& one : part.logprobs)
    of.n_characters += static_cast<uint64_t>(std::ranges::count_if(one.piece, begins_character));
  of.n_logprobs = said.logprobs.size();
  return out;
}

std::string chunk_writer::delta(choice_state& of, const choice& said, ordered_json content,
                                const char* finish_reason) {
  ordered_json row = {{"index", of.index}};
  row[from_.to == endpoint::chat ? "delta" : "text"] = std::move(content);
  row["logprobs"] = new_logprobs(of, said);
  row["finish_reason"] = nullptr;
  if (finish_reason != nullptr) row["finish_reason"] = finish_reason;
  return chunk_of(ordered_json::array({std::move(row)}));
}

std::string chunk_writer::parts(choice_state& of, const choice& said) {
  std::string out;
  bitnet_answer_event e{};
  e.struct_size = sizeof e;
  library_error err;
  while (bitnet_answer_next(of.parts.get(), &e, &err) == BITNET_OK) {
    of.has_call = of.has_call || e.kind == BITNET_ANSWER_CALL_BEGIN;
    ordered_json content = delta_of(e);
    if (!content.is_null()) out += delta(of, said, std::move(content), nullptr);
  }
  return out;
}

parsed<std::string> chunk_writer::text(choice_state& of, const choice& said, std::string_view piece,
                                       bool is_last) {
  if (!of.parts) {
    if (piece.empty()) return "";
    ordered_json content = std::string(piece);
    if (from_.to == endpoint::chat) content = {{"content", std::string(piece)}};
    return delta(of, said, std::move(content), nullptr);
  }
  library_error err;
  bitnet_status status = BITNET_OK;
  if (!piece.empty()) status = bitnet_answer_push(of.parts.get(), borrowed(piece), &err);
  if (status == BITNET_OK && is_last) status = bitnet_answer_finish(of.parts.get(), &err);
  if (status != BITNET_OK) return std::unexpected(error_of(BITNET_OUT_OF_MEMORY, err.message));
  return parts(of, said);
}

std::string chunk_writer::begin() {
  std::string out;
  if (from_.to != endpoint::chat) return out;
  for (const std::vector<choice_state>& row : choices_)
    for (const choice_state& one : row)
      out += chunk_of(ordered_json::array({{{"index", one.index},
                                            {"delta", {{"role", "assistant"}, {"content", ""}}},
                                            {"logprobs", nullptr},
                                            {"finish_reason", nullptr}}}));
  return out;
}

parsed<std::string> chunk_writer::take(std::size_t prompt, const bitnet_event& e) {
  if (prompt >= answers_.size() || e.choice >= choices_[prompt].size()) return "";
  collected_answer& all = answers_[prompt];
  all.take(e, from_.how.logprobs);
  choice_state& of = choices_[prompt][e.choice];
  const choice& said = all.choices()[e.choice];
  if (e.kind == BITNET_EVENT_TEXT) return text(of, said, {e.text.data, e.text.size}, false);
  if (e.kind != BITNET_EVENT_END) return "";
  auto out = text(of, said, "", true);
  if (!out) return out;
  const char* reason = said.finish_reason;
  if (of.has_call && reason == std::string_view("stop")) reason = "tool_calls";
  const bool is_chat = from_.to == endpoint::chat;
  return *out + delta(of, said, is_chat ? ordered_json::object() : ordered_json(""), reason);
}

parsed<std::string> chunk_writer::end(const timings& took) {
  std::string out;
  if (from_.include_usage) {
    usage used;
    for (const collected_answer& one : answers_) used.add(one.used());
    out = event_of(
        {{"id", about_.id},
         {"object", from_.to == endpoint::chat ? "chat.completion.chunk" : "text_completion"},
         {"created", about_.created},
         {"model", about_.model},
         {"choices", ordered_json::array()},
         {"usage", usage_of_answers(used)},
         {"timings", took.json()},
         {"system_fingerprint", about_.fingerprint}});
  }
  return out + "data: [DONE]\n\n";
}

std::string chunk_writer::fail(const api_error& why) {
  return event_of({{"error", error_json(why)}});
}

}  // namespace bitnet::host::openai
