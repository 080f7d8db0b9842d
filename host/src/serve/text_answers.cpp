#include "serve/text_answers.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "openai/body.hpp"
#include "openai/prompt.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

openai::api_error of_text(std::string param, const failure& why) {
  return openai::error_of(BITNET_INVALID_ARGUMENT, why.message, std::move(param));
}

// A token with its text, or with bytes if it is part of a character.
ordered_json piece_json(bitnet_token id, const std::string& piece) {
  const json as_text = piece;
  try {
    (void)as_text.dump();
    return {{"id", id}, {"piece", piece}};
  } catch (const json::type_error&) {
    ordered_json bytes = ordered_json::array();
    for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
    return {{"id", id}, {"piece", std::move(bytes)}};
  }
}

}  // namespace

http::answer tokens_answer(const serving&, const served_model& of, const std::string& body) {
  const auto parsed = openai::parse_object(body, "the body");
  if (!parsed) return answer_of(parsed.error());
  openai::field_reader from(*parsed);
  std::string content;
  bool add_special = false;
  bool parse_special = true;
  bool with_pieces = false;
  if (from.any("content") == nullptr) from.wrong("content", "a string");
  from.text("content", content);
  from.flag("add_special", add_special);
  from.flag("parse_special", parse_special);
  from.flag("with_pieces", with_pieces);
  if (const auto& why = from.error()) return answer_of(*why);
  const uint32_t flags =
      (add_special ? BITNET_TOKENIZE_MODEL_BOS | BITNET_TOKENIZE_MODEL_EOS : 0U) |
      (parse_special ? BITNET_TOKENIZE_PARSE_SPECIAL : 0U);
  const bitnet_model* const model = of.facts().model.get();
  const auto ids = tokenize(model, content, flags);
  if (!ids) return answer_of(of_text("content", ids.error()));
  ordered_json list = ordered_json::array();
  for (const bitnet_token id : *ids) {
    if (!with_pieces) {
      list.push_back(id);
      continue;
    }
    const auto piece = detokenize(model, {id}, BITNET_DETOKENIZE_SPECIAL);
    if (!piece) return answer_of(of_text("content", piece.error()));
    list.push_back(piece_json(id, *piece));
  }
  return answer_of(ordered_json{{"tokens", std::move(list)}});
}

http::answer text_answer(const serving&, const served_model& of, const std::string& body) {
  const auto parsed = openai::parse_object(body, "the body");
  if (!parsed) return answer_of(parsed.error());
  openai::field_reader from(*parsed);
  const json* const list = from.any("tokens");
  token_list ids;
  const uint32_t n_vocab = of.facts().info.n_vocab;
  const auto is_id = [&](const json& x) {
    return x.is_number_integer() && x.get<double>() >= 0 && x.get<double>() < n_vocab;
  };
  if (list == nullptr || !list->is_array() || !std::ranges::all_of(*list, is_id))
    from.wrong("tokens", fmt::format("an array of token ids from 0 to {}", n_vocab - 1));
  if (const auto& why = from.error()) return answer_of(*why);
  for (const json& one : *list) ids.push_back(one.get<bitnet_token>());
  const auto text = detokenize(of.facts().model.get(), ids, BITNET_DETOKENIZE_SPECIAL);
  if (!text) return answer_of(of_text("tokens", text.error()));
  return answer_of(ordered_json{{"content", *text}});
}

http::answer prompt_answer(const serving& in, const served_model& of, const std::string& body) {
  const auto parsed = openai::parse_object(body, "the body");
  if (!parsed) return answer_of(parsed.error());
  const model_facts& facts = of.facts();
  openai::model_limits limits = of.texts().limits;
  auto asked = openai::parse_request(openai::endpoint::chat, *parsed, body, limits, facts.defaults);
  if (!asked) return answer_of(asked.error());
  limits.n_context = 0;  // nothing is evaluated, so length does not matter
  const auto prompts =
      openai::prompts_of(*asked, facts.model.get(), limits, in.facts().template_name);
  if (!prompts) return answer_of(prompts.error());
  const openai::prompt& one = prompts->front();
  const auto text = detokenize(facts.model.get(), one.ids, BITNET_DETOKENIZE_SPECIAL);
  if (!text) return answer_of(of_text("messages", text.error()));
  return answer_of(ordered_json{{"prompt", *text}});
}

}  // namespace bitnet::host
