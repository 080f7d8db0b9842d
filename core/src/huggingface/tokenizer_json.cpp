#include "huggingface/tokenizer_json.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "gguf/text.hpp"
#include "huggingface/config.hpp"
#include "huggingface/json_members.hpp"
#include "huggingface/splitting_rule.hpp"

namespace bitnet::huggingface {
namespace {

std::unexpected<failure> bad_tokenizer(const std::string& message) {
  return bad_data(fmt::format("tokenizer.json: {}", message));
}

using gguf::quote;
using nlohmann::json;

constexpr uint64_t most_tokens = uint64_t{1} << 24;

// tokenizer.ggml.token_type
constexpr int32_t normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6;

struct vocabulary {
  std::vector<std::string> texts;  // "" where no token has the id
  std::vector<int32_t> types;
  std::unordered_map<std::string, uint32_t> ids;

  result<void> add(const std::string& text, const json& id, int32_t type) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= most_tokens)
      return bad_tokenizer(fmt::format("token {} has no id below {}", quote(text), most_tokens));
    const auto i = id.get<uint64_t>();
    if (i >= texts.size()) {
      texts.resize(i + 1);
      types.resize(i + 1, unused);
    }
    if (!texts[i].empty() && texts[i] != text)
      return bad_tokenizer(
          fmt::format("tokens {} and {} share the id {}", quote(texts[i]), quote(text), i));
    texts[i] = text;
    types[i] = type;
    ids[text] = static_cast<uint32_t>(i);
    return {};
  }
};

result<vocabulary> read_tokens(const json& file) {
  vocabulary v;
  const json& tokens = at(at(file, "model"), "vocab");
  if (!tokens.is_object() || tokens.empty())
    return bad_tokenizer("expected model.vocab to be an object");
  for (const auto& [text, id] : tokens.items())
    if (auto ok = v.add(text, id, normal); !ok) return std::unexpected(ok.error());
  const json& added = at(file, "added_tokens");
  for (const json& one : added.is_array() ? added : json::array())
    if (auto ok = v.add(text_at(one, "content"), at(one, "id"),
                        true_at(one, "special") ? control : user_defined);
        !ok)
      return std::unexpected(ok.error());
  return v;
}

// "a b", or ["a", "b"] in newer files.
result<std::vector<std::string>> read_merges(const json& file) {
  const json& merges = at(at(file, "model"), "merges");
  if (!merges.is_array()) return bad_tokenizer("expected model.merges to be an array");
  std::vector<std::string> out;
  for (const json& one : merges) {
    if (one.is_string())
      out.push_back(one.get<std::string>());
    else if (one.is_array() && one.size() == 2 && one[0].is_string() && one[1].is_string())
      out.push_back(one[0].get<std::string>() + " " + one[1].get<std::string>());
    else
      return bad_tokenizer(
          fmt::format("merge {} is neither a text nor a pair of texts", out.size()));
  }
  return out;
}

// The piece that a merge makes: SentencePiece merges the pair whose piece has the best score.
std::vector<float> scores_of(const vocabulary& v, const std::vector<std::string>& merges) {
  std::vector<float> scores(v.texts.size(), 0);
  for (size_t i = 0; i < v.texts.size(); ++i)
    if (v.types[i] == normal) scores[i] = -1 - static_cast<float>(merges.size());
  for (size_t rank = merges.size(); rank > 0; --rank) {
    const std::string& merge = merges[rank - 1];
    const size_t blank = merge.find(' ', 1);
    if (blank == std::string::npos) continue;
    const auto piece = v.ids.find(merge.substr(0, blank) + merge.substr(blank + 1));
    if (piece != v.ids.end()) scores[piece->second] = -static_cast<float>(rank);
  }
  return scores;
}

// Whether scores make SentencePiece merge as the list does. It makes a piece of any two parts that
// are pieces, as lists do that were made of scores; of a trained list it must be one pair.
bool scores_say_all(const vocabulary& v, const std::vector<std::string>& merges) {
  const std::unordered_set<std::string_view> listed(merges.begin(), merges.end());
  std::string pair;
  for (size_t i = 0; i < v.texts.size(); ++i) {
    const std::string_view text = v.texts[i];
    // Longer ones would take time for a broken file only.
    if (v.types[i] != normal || text.size() > 256) continue;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = v.ids.find(std::string(text.substr(0, cut)));
      const auto right = v.ids.find(std::string(text.substr(cut)));
      if (left == v.ids.end() || right == v.ids.end()) continue;
      pair.assign(left->first).append(" ").append(right->first);
      if (!listed.contains(pair)) return false;
    }
  }
  return true;
}

// Whether the components mark blanks and do nothing else.
bool only_marks_blanks(const json& file) {
  const json& normalizer = at(file, "normalizer");
  const json& split = at(file, "pre_tokenizer");
  return text_at(normalizer, "type") == "Replace" &&
         text_at(at(normalizer, "pattern"), "String") == " " &&
         text_at(normalizer, "content") == "\xE2\x96\x81" &&
         (split.is_null() ||
          (text_at(split, "type") == "Split" && text_at(at(split, "pattern"), "String") == " "));
}

void mark_bytes(vocabulary& v) {
  for (size_t i = 0; i < v.texts.size(); ++i) {
    const std::string& t = v.texts[i];
    if (t.size() == 6 && t.starts_with("<0x") && t.ends_with('>') && v.types[i] == normal)
      v.types[i] = byte;
    if (t == "<unk>") v.types[i] = unknown;
  }
}

std::optional<uint32_t> id_of(const vocabulary& v, std::optional<uint32_t> given,
                              const std::string& text) {
  if (given) return given;
  const auto found = v.ids.find(text);
  if (text.empty() || found == v.ids.end()) return std::nullopt;
  return found->second;
}

// Whether the post_processor puts the token first.
bool template_begins_with(const json& file, const std::string& bos) {
  const auto begins = [&](const json& part) {
    const json& single = at(part, "single");
    return single.is_array() && !single.empty() && !bos.empty() &&
           text_at(at(single[0], "SpecialToken"), "id") == bos;
  };
  const json& processor = at(file, "post_processor");
  const json& list = at(processor, "processors");
  return list.is_array() ? std::ranges::any_of(list, begins) : begins(processor);
}

// Old files leave the type away; only BPE has merges.
result<void> check_type(const json& model) {
  const std::string type = text_at(model, "type");
  if (type == "BPE" || (type.empty() && model.contains("merges"))) return {};
  return fail(
      BITNET_UNSUPPORTED,
      fmt::format("tokenizer.json holds a tokenizer of type {}; expected BPE", quote(type)));
}

// A token for each row of the embedding.
result<void> pad(vocabulary& v, uint64_t rows) {
  if (v.texts.size() > rows)
    return bad_tokenizer(
        fmt::format("has {} tokens, but the embedding has {} rows", v.texts.size(), rows));
  if (rows > most_tokens) return bad_tokenizer(fmt::format("asks for {} tokens", rows));
  v.texts.resize(rows);
  v.types.resize(rows, unused);
  for (size_t i = 0; i < v.texts.size(); ++i)
    if (v.texts[i].empty()) v.texts[i] = fmt::format("[PAD{}]", i);
  return {};
}

// As SentencePiece, whose merges are scores.
void write_pieces(const json& file, const std::vector<std::string>& merges, vocabulary& v,
                  gguf::metadata_builder& out) {
  mark_bytes(v);
  out.text("tokenizer.ggml.model", "llama");
  out.text("tokenizer.ggml.pre", "default");
  out.f32s("tokenizer.ggml.scores", scores_of(v, merges));
  // The normalizer of these puts a word mark before the text, unless it has none.
  const json& normalizer = at(file, "normalizer");
  out.boolean("tokenizer.ggml.add_space_prefix",
              normalizer.dump().find("Prepend") != std::string::npos ||
                  at(file, "pre_tokenizer").dump().find("Metaspace") != std::string::npos);
}

// As BPE over characters: docs/reference/tokenizers.md#bpe-over-characters
result<void> write_characters(const std::vector<std::string>& merges, vocabulary& v,
                              gguf::metadata_builder& out) {
  for (size_t i = 0; i < merges.size(); ++i) {
    const bool feed = merges[i].contains('\n');
    if (feed && merges[i].find_first_not_of("\n ") != std::string::npos)
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("tokenizer.json joins line ends with other text (merge {}), which no "
                              "splitting rule that this program knows allows",
                              i));
  }
  mark_bytes(v);
  out.text("tokenizer.ggml.model", "gpt2");
  out.text("tokenizer.ggml.pre", "sarvam-moe");
  out.texts("tokenizer.ggml.merges", merges);
  return {};
}

result<void> write_byte_level(const json& file, const std::vector<std::string>& merges,
                              gguf::metadata_builder& out) {
  const auto pre = splitting_rule(file);
  if (!pre) return std::unexpected(pre.error());
  const auto composing = composes(file);
  if (!composing) return std::unexpected(composing.error());
  out.text("tokenizer.ggml.model", "gpt2");
  out.text("tokenizer.ggml.pre", *pre);
  if (*composing) out.boolean("tokenizer.ggml.normalizer.nfc", true);
  out.texts("tokenizer.ggml.merges", merges);
  return {};
}

void write_special_tokens(const json& file, const vocabulary& v, const tokenizer_hints& hints,
                          gguf::metadata_builder& out) {
  const auto id = [&](const char* key, std::optional<uint32_t> given, const std::string& text) {
    if (const auto found = id_of(v, given, text)) out.u32(key, *found);
  };
  id("tokenizer.ggml.bos_token_id", hints.bos, hints.bos_text);
  id("tokenizer.ggml.eos_token_id", hints.eos, hints.eos_text);
  id("tokenizer.ggml.padding_token_id", hints.padding, hints.padding_text);
  id("tokenizer.ggml.unknown_token_id", std::nullopt, hints.unknown_text);
  std::string bos_text = hints.bos_text;
  if (hints.bos && *hints.bos < v.texts.size()) bos_text = v.texts[*hints.bos];
  out.boolean("tokenizer.ggml.add_bos_token",
              hints.add_bos.value_or(template_begins_with(file, bos_text)));
}

}  // namespace

result<std::string> read_tokenizer(std::string_view tokenizer_json, const tokenizer_hints& hints,
                                   gguf::metadata_builder& out) {
  const auto parsed = parse_object(tokenizer_json, "tokenizer.json");
  if (!parsed) return std::unexpected(parsed.error());
  const json& file = *parsed;
  const json& model = at(file, "model");
  if (auto ok = check_type(model); !ok) return std::unexpected(ok.error());
  auto v = read_tokens(file);
  if (!v) return std::unexpected(v.error());
  const auto merges = read_merges(file);
  if (!merges) return std::unexpected(merges.error());
  if (auto ok = pad(*v, hints.n_vocab); !ok) return std::unexpected(ok.error());
  const bool fallback = true_at(model, "byte_fallback");
  const bool characters = fallback && only_marks_blanks(file) && !scores_say_all(*v, *merges);
  const bool spm = fallback && !characters;
  result<void> written;
  if (spm) write_pieces(file, *merges, *v, out);
  if (characters) written = write_characters(*merges, *v, out);
  if (!fallback) written = write_byte_level(file, *merges, out);
  if (!written) return std::unexpected(written.error());
  out.texts("tokenizer.ggml.tokens", v->texts);
  out.i32s("tokenizer.ggml.token_type", v->types);
  write_special_tokens(file, *v, hints, out);
  if (!hints.chat_template.empty()) out.text("tokenizer.chat_template", hints.chat_template);
  return std::string(spm ? "llama" : "gpt2");
}

}  // namespace bitnet::huggingface
