#include "huggingface/post_processor.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>

#include "gguf/text.hpp"
#include "huggingface/config_reading.hpp"
#include "huggingface/json_members.hpp"

namespace bitnet::huggingface {
namespace {

using gguf::quote;
using nlohmann::json;

std::unexpected<failure> unknown_framing(const std::string& what) {
  return fail(BITNET_UNSUPPORTED,
              fmt::format("tokenizer.json: post_processor {}; this program puts at most one token "
                          "before a text and one behind it",
                          what));
}

result<void> put_token(std::optional<uint32_t>& into, const json& id, const std::string& token) {
  const auto found = count_of(id);
  if (!found)
    return bad_data(fmt::format("tokenizer.json: post_processor names no id for {}", quote(token)));
  if (into) return unknown_framing(fmt::format("puts {} beside another token", quote(token)));
  into = found;
  return {};
}

// Reads "single"; "pair" is for two texts.
result<void> add_template(const json& part, framing& to) {
  const json& single = at(part, "single");
  if (!single.is_array()) return bad_data("tokenizer.json: post_processor has no list 'single'");
  bool behind = false;
  for (const json& one : single) {
    if (at(one, "Sequence").is_object()) {
      if (behind) return unknown_framing("puts a text twice");
      behind = true;
      continue;
    }
    const std::string token = text_at(at(one, "SpecialToken"), "id");
    const json& ids = at(at(at(part, "special_tokens"), token.c_str()), "ids");
    if (ids.is_array() && ids.size() > 1)
      return unknown_framing(fmt::format("puts {} tokens for {}", ids.size(), quote(token)));
    static const json none;
    const json& id = ids.is_array() && !ids.empty() ? ids[0] : none;
    if (auto ok = put_token(behind ? to.last : to.first, id, token); !ok) return ok;
  }
  return behind ? result<void>() : unknown_framing("puts no text");
}

// ["[CLS]", 101]
result<void> add_pair(const json& part, const char* key, std::optional<uint32_t>& into) {
  const json& pair = at(part, key);
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string())
    return bad_data(fmt::format("tokenizer.json: post_processor has no pair {}", quote(key)));
  return put_token(into, pair[1], pair[0].get<std::string>());
}

result<void> add_processor(const json& part, framing& to) {
  const std::string type = text_at(part, "type");
  if (type == "ByteLevel") return {};  // changes offsets only
  if (type == "TemplateProcessing") return add_template(part, to);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    if (auto ok = add_pair(part, "cls", to.first); !ok) return ok;
    return add_pair(part, "sep", to.last);
  }
  return unknown_framing(fmt::format("is of type {}", quote(type)));
}

}  // namespace

result<framing> framing_of(const json& file) {
  framing to;
  const json& processor = at(file, "post_processor");
  if (processor.is_null()) return to;
  const json& list = at(processor, "processors");
  if (text_at(processor, "type") != "Sequence") {
    if (auto ok = add_processor(processor, to); !ok) return std::unexpected(ok.error());
    return to;
  }
  if (!list.is_array()) return bad_data("tokenizer.json: post_processor has no list 'processors'");
  for (const json& part : list)
    if (auto ok = add_processor(part, to); !ok) return std::unexpected(ok.error());
  return to;
}

}  // namespace bitnet::huggingface
