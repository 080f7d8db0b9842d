#include "openai/prompt.hpp"

#include <utility>

#include "library/answer_parts.hpp"
#include "library/handles.hpp"

namespace bitnet::host::openai {
namespace {

// Asks a call for its number of tokens, then for them: `call(out, capacity, count)`.
template <class Call>
bitnet_status fetch_ids(Call call, token_list& ids) {
  uint64_t count = 0;
  bitnet_status status = call(ids.data(), uint64_t{ids.size()}, &count);
  if (status == BITNET_OK && count > ids.size()) {
    ids.resize(count);
    status = call(ids.data(), uint64_t{ids.size()}, &count);
  }
  if (status == BITNET_OK) ids.resize(count);
  return status;
}

parsed<token_list> tokens_of(const std::string& text, uint32_t flags, const bitnet_model* with,
                             const char* member) {
  library_error err;
  token_list ids(text.size() / 2 + 8);
  const bitnet_status status = fetch_ids(
      [&](bitnet_token* out, uint64_t capacity, uint64_t* count) {
        return bitnet_tokenize(with, borrowed(text), flags, out, capacity, count, &err);
      },
      ids);
  if (status != BITNET_OK) return std::unexpected(error_of(status, err.message, member));
  return ids;
}

// What the rendered prompt says at its end that belongs to the answer.
std::string begun_answer(std::string_view text) {
  const auto last = text.find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos) return "";
  const bool thinks = text.substr(0, last + 1).ends_with(thinking_begins);
  return thinks ? std::string(thinking_begins) + "\n" : "";
}

parsed<prompt> chat_prompt(const std::vector<message>& messages, const bitnet_model* with,
                           const char* template_name) {
  std::vector<bitnet_message> views;
  for (const message& one : messages) views.push_back({borrowed(one.role), borrowed(one.content)});
  bitnet_chat_options options;
  bitnet_chat_defaults(&options, sizeof options);
  options.template_name = template_name;
  constexpr std::size_t rarely_more = 1024;
  prompt out{token_list(rarely_more), ""};
  library_error err;
  bitnet_status status = fetch_ids(
      [&](bitnet_token* ids, uint64_t capacity, uint64_t* count) {
        return bitnet_chat_tokenize(with, &options, views.data(), sizeof views[0], views.size(),
                                    ids, capacity, count, nullptr, &err);
      },
      out.ids);
  if (status != BITNET_OK) return std::unexpected(error_of(status, err.message, "messages"));
  std::string text;
  status = fetch(
      [&](char* to, uint64_t capacity, uint64_t* needed) {
        return bitnet_chat_format(with, template_name, views.data(), sizeof views[0], views.size(),
                                  to, capacity, needed, &err);
      },
      text);
  if (status != BITNET_OK) return std::unexpected(error_of(status, err.message, "messages"));
  out.begun = begun_answer(text);
  return out;
}

parsed<void> check_length(const prompt& one, const request& from, const model_limits& model) {
  const char* const member = prompt_member(from.to);
  if (one.ids.empty()) return invalid(member, "the prompt has no token; give a text");
  const uint64_t room = from.to == endpoint::embeddings ? 0 : 1;
  if (model.n_context != 0 && one.ids.size() + room > model.n_context)
    return too_long(member, one.ids.size(), model.n_context);
  return {};
}

}  // namespace

parsed<std::vector<prompt>> prompts_of(const request& from, const bitnet_model* with,
                                       const model_limits& model,
                                       const std::string& template_name) {
  std::vector<prompt> out;
  if (from.to == endpoint::chat) {
    auto one =
        chat_prompt(from.messages, with, template_name.empty() ? nullptr : template_name.c_str());
    if (!one) return std::unexpected(one.error());
    out.push_back(*std::move(one));
  }
  // As `bitnet run` and `bitnet embed` have it.
  const uint32_t flags =
      BITNET_TOKENIZE_MODEL_BOS |
      (from.to == endpoint::embeddings ? BITNET_TOKENIZE_MODEL_EOS : BITNET_TOKENIZE_PARSE_SPECIAL);
  for (const text_or_ids& input : from.inputs) {
    if (const auto* const ids = std::get_if<token_list>(&input)) {
      out.push_back({*ids, ""});
      continue;
    }
    auto ids = tokens_of(std::get<std::string>(input), flags, with, prompt_member(from.to));
    if (!ids) return std::unexpected(ids.error());
    out.push_back({*std::move(ids), ""});
  }
  for (const prompt& one : out)
    if (auto ok = check_length(one, from, model); !ok) return std::unexpected(ok.error());
  return out;
}

}  // namespace bitnet::host::openai
