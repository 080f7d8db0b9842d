#include "openai/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <nlohmann/json.hpp>

#include "library/handles.hpp"
#include "openai/base64.hpp"
#include "openai/shortest.hpp"

namespace bitnet::host::openai {
namespace {

using nlohmann::ordered_json;

std::string text_of(const bitnet_model* model, std::span<const bitnet_token> ids) {
  std::string text;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_detokenize(model, ids.data(), ids.size(), BITNET_DETOKENIZE_SPECIAL, out,
                                 capacity, needed, nullptr);
      },
      text);
  return status == BITNET_OK ? text : "";
}

// A token's bytes inside a text. It is measured after another token, since some vocabularies drop
// the first token's blank.
std::string piece_of(const bitnet_model* model, bitnet_token id) {
  const std::string alone = text_of(model, std::span(&id, 1));
  const bitnet_token twice[] = {id, id};
  const std::string both = text_of(model, twice);
  return both.starts_with(alone) ? both.substr(alone.size()) : alone;
}

const char* finish_reason_of(uint32_t stop) {
  return stop == BITNET_STOP_LENGTH || stop == BITNET_STOP_CONTEXT ? "length" : "stop";
}

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// ---- chats -------------------------------------------------------------------------------------

ordered_json bytes_json(const std::string& text) {
  ordered_json out = ordered_json::array();
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

ordered_json logprob_json(const std::string& piece, float logprob) {
  return {{"token", piece}, {"logprob", shortest(logprob)}, {"bytes", bytes_json(piece)}};
}

ordered_json chat_logprobs(const choice& said) {
  ordered_json content = ordered_json::array();
  for (const token_logprob& one : said.logprobs) {
    ordered_json row = logprob_json(one.piece, one.logprob.value_or(0));
    ordered_json top = ordered_json::array();
    for (const auto& [piece, logprob] : one.top) top.push_back(logprob_json(piece, logprob));
    row["top_logprobs"] = std::move(top);
    content.push_back(std::move(row));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

struct answer_closer {
  void operator()(bitnet_answer* answer) const noexcept { bitnet_answer_close(answer); }
};

// {"role", "content", "refusal"}, and "reasoning_content" and "tool_calls" if there are any.
// `call_ids`: prefix of the calls' ids.
parsed<ordered_json> message_of(const choice& said, const prompt& asked,
                                const std::string& call_ids) {
  if (!asked.chat)
    return ordered_json{{"role", "assistant"}, {"content", said.text}, {"refusal", nullptr}};
  library_error err;
  bitnet_answer* opened = nullptr;
  bitnet_status status = bitnet_chat_answer(asked.chat.get(), call_ids.c_str(), &opened, &err);
  const std::unique_ptr<bitnet_answer, answer_closer> answer(opened);
  if (status == BITNET_OK) status = bitnet_answer_push(opened, borrowed(said.text), &err);
  if (status == BITNET_OK) status = bitnet_answer_finish(opened, &err);
  std::string text;
  if (status == BITNET_OK)
    status = fetch(
        [&](char* out, uint64_t capacity, uint64_t* needed) {
          return bitnet_answer_message(opened, out, capacity, needed, &err);
        },
        text);
  if (status != BITNET_OK) return std::unexpected(error_of(BITNET_OUT_OF_MEMORY, err.message));
  ordered_json out = ordered_json::parse(text);
  out["refusal"] = nullptr;
  return out;
}

// ---- completions -------------------------------------------------------------------------------

uint64_t characters_of(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

// Bytes of `text` that this token covers. 0 for a control token; a leading blank that the
// vocabulary added is not counted.
std::size_t width_in(std::string_view text, std::string_view piece) {
  if (text.starts_with(piece)) return piece.size();
  if (piece.starts_with(' ') && text.starts_with(piece.substr(1))) return piece.size() - 1;
  return 0;
}

// The four lists of a completion's log probabilities.
class logprob_lists {
 public:
  // `offset`: number of characters in the choice's text before the token.
  void add(const token_logprob& one, uint64_t offset) {
    tokens_.push_back(one.piece);
    logprobs_.push_back(one.logprob ? ordered_json(shortest(*one.logprob)) : ordered_json());
    ordered_json top = one.logprob ? ordered_json::object() : ordered_json();
    for (const auto& [piece, logprob] : one.top) top[piece] = shortest(logprob);
    tops_.push_back(std::move(top));
    offsets_.push_back(offset);
  }
  ordered_json take() {
    return {{"tokens", std::move(tokens_)},
            {"token_logprobs", std::move(logprobs_)},
            {"top_logprobs", std::move(tops_)},
            {"text_offset", std::move(offsets_)}};
  }

 private:
  ordered_json tokens_ = ordered_json::array();
  ordered_json logprobs_ = ordered_json::array();
  ordered_json tops_ = ordered_json::array();
  ordered_json offsets_ = ordered_json::array();
};

// `echoed`: the prompt's text, which comes before the answer. `before`: the prompt's tokens.
ordered_json completion_logprobs(const choice& said, std::string_view echoed,
                                 std::span<const token_logprob> before) {
  logprob_lists out;
  std::size_t at = 0;  // offset in bytes
  uint64_t offset = 0;
  for (const token_logprob& one : before) {
    out.add(one, offset);
    const std::size_t width = width_in(echoed.substr(at), one.piece);
    offset += characters_of(echoed.substr(at, width));
    at += width;
  }
  offset = characters_of(echoed);
  for (const token_logprob& one : said.logprobs) {
    out.add(one, offset);
    offset += characters_of(one.piece);
  }
  return out.take();
}

parsed<ordered_json> choice_json(const request& from, const object_facts& about, std::size_t index,
                                 const choice& said, const collected_answer& of,
                                 const prompt& asked) {
  const bool is_chat = from.to == endpoint::chat;
  ordered_json row = {{"index", index}};
  const char* reason = said.finish_reason;
  if (is_chat) {
    auto message = message_of(said, asked, fmt::format("call_{}_{}_", about.id, index));
    if (!message) return message;
    if (message->contains("tool_calls") && reason == std::string_view("stop"))
      reason = "tool_calls";
    row["message"] = *std::move(message);
  } else {
    row["text"] = asked.echoed + said.text;
  }
  row["logprobs"] = nullptr;
  if (from.how.logprobs)
    row["logprobs"] = is_chat ? chat_logprobs(said)
                              : completion_logprobs(said, asked.echoed, of.prompt_logprobs());
  row["finish_reason"] = reason;
  return row;
}

// ---- embeddings --------------------------------------------------------------------------------

ordered_json embedding_json(std::span<const float> numbers, bool as_base64) {
  static_assert(std::endian::native == std::endian::little, "clients read little-endian floats");
  if (as_base64) return base64(std::as_bytes(numbers));
  ordered_json out = ordered_json::array();
  for (const float x : numbers) out.push_back(shortest(x));
  return out;
}

ordered_json usage_json(const usage& used, bool generated) {
  ordered_json out = {{"prompt_tokens", used.prompt}};
  if (generated) out["completion_tokens"] = used.completion;
  out["total_tokens"] = used.prompt + used.completion;
  if (generated) out["prompt_tokens_details"] = {{"cached_tokens", used.cached}};
  return out;
}

}  // namespace

void usage::add(const usage& other) {
  prompt += other.prompt;
  completion += other.completion;
  cached += other.cached;
}

token_logprob collected_answer::logprob_of(const bitnet_event& e) const {
  token_logprob one{piece_of(with_, e.token), e.logprob, {}};
  for (uint32_t i = 0; i < e.n_top; ++i)
    one.top.emplace_back(piece_of(with_, e.top[i].token), e.top[i].logprob);
  return one;
}

void collected_answer::end(const bitnet_event& e, choice& of) {
  --n_open_;
  of.finish_reason = finish_reason_of(e.stop_reason);
  // The token that ends an answer has no text, so its log probability is dropped.
  const bool by_token = e.stop_reason == BITNET_STOP_EOS || e.stop_reason == BITNET_STOP_TOKEN;
  if (by_token && !of.logprobs.empty()) of.logprobs.pop_back();
  used_.prompt = std::max(used_.prompt, e.n_prompt);  // all choices have the same prompt
  used_.cached = std::max(used_.cached, e.n_cached);
  used_.completion += e.n_generated;
  embedding_.assign(e.embedding, e.embedding + e.n_embedding);
}

void collected_answer::take(const bitnet_event& e, bool with_logprobs) {
  if (e.choice >= choices_.size()) return;
  choice& to = choices_[e.choice];
  if (e.kind == BITNET_EVENT_PROMPT) {
    prompt_logprobs_.push_back(logprob_of(e));
    if (prompt_logprobs_.size() == 1) prompt_logprobs_.front().logprob.reset();
  } else if (e.kind == BITNET_EVENT_TEXT) {
    to.text.append(e.text.data, e.text.size);
    if (with_logprobs && e.token >= 0) to.logprobs.push_back(logprob_of(e));
  } else if (e.kind == BITNET_EVENT_END) {
    end(e, to);
  }
}

parsed<ordered_json> response_json(const request& from, const object_facts& about,
                                   std::span<const collected_answer> answers,
                                   std::span<const prompt> prompts) {
  const bool embeds = from.to == endpoint::embeddings;
  const bool is_chat = from.to == endpoint::chat;
  ordered_json list = ordered_json::array();
  usage used;
  for (std::size_t p = 0; p < answers.size(); ++p) {
    used.add(answers[p].used());
    if (embeds) {
      list.push_back({{"object", "embedding"},
                      {"index", p},
                      {"embedding", embedding_json(answers[p].embedding(), from.base64)}});
      continue;
    }
    for (const choice& said : answers[p].choices()) {
      auto row = choice_json(from, about, list.size(), said, answers[p], prompts[p]);
      if (!row) return row;
      list.push_back(*std::move(row));
    }
  }
  if (embeds)
    return ordered_json{{"object", "list"},
                        {"data", std::move(list)},
                        {"model", about.model},
                        {"usage", usage_json(used, false)},
                        {"system_fingerprint", about.fingerprint}};
  ordered_json out = {{"id", about.id},
                      {"object", is_chat ? "chat.completion" : "text_completion"},
                      {"created", about.created},
                      {"model", about.model},
                      {"choices", std::move(list)},
                      {"usage", usage_json(used, true)},
                      {"system_fingerprint", about.fingerprint}};
  if (!prompts.empty()) add_unbound(out, prompts.front().unbound);
  return out;
}

void add_unbound(ordered_json& to, const std::string& lines) {
  if (lines.empty()) return;
  ordered_json& list = to["unbound_tools"] = ordered_json::array();
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    list.push_back(lines.substr(at, end - at));
    at = end + 1;
  }
}

ordered_json logprobs_json(endpoint to, const choice& said) {
  return to == endpoint::chat ? chat_logprobs(said) : completion_logprobs(said, "", {});
}

ordered_json usage_of_answers(const usage& used) {
  return usage_json(used, true);
}

}  // namespace bitnet::host::openai
