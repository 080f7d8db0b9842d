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
#include "huggingface/members.hpp"
#include "huggingface/post_processor.hpp"
#include "huggingface/sentence_pieces.hpp"
#include "huggingface/splitting_rule.hpp"

namespace bitnet::huggingface {
namespace {

std::unexpected<failure> bad_tokenizer(const std::string& message) {
  return bad_data(fmt::format("tokenizer.json: {}", message));
}

using gguf::quote;
using nlohmann::json;

constexpr uint64_t most_tokens = uint64_t{1} << 24;

// Values of tokenizer.ggml.token_type.
constexpr int32_t normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6;

struct vocabulary {
  std::vector<std::string> texts;  // "" if no token has the id
  std::vector<int32_t> types;
  std::unordered_map<std::string, uint32_t> ids;
  std::vector<int32_t> flags;  // pairs: a token and its flags

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
  for (const json& one : added.is_array() ? added : json::array()) {
    for (const char* key : {"special", "lstrip", "rstrip", "single_word"})
      if (const json& x = at(one, key); !x.is_null() && !x.is_boolean())
        return bad_tokenizer(fmt::format("{} of token {} is {}; expected true or false", quote(key),
                                         quote(text_at(one, "content")), type_of(x)));
    if (auto ok = v.add(text_at(one, "content"), at(one, "id"),
                        true_at(one, "special") ? control : user_defined);
        !ok)
      return std::unexpected(ok.error());
    const int32_t flags = (true_at(one, "lstrip") ? 1 : 0) | (true_at(one, "rstrip") ? 2 : 0) |
                          (true_at(one, "single_word") ? 4 : 0);
    if (flags != 0) v.flags.insert(v.flags.end(), {at(one, "id").get<int32_t>(), flags});
  }
  return v;
}

// Rejects options that change how words become tokens.
result<void> check_model(const json& model) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const std::string affix = text_at(model, key); !affix.empty())
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("tokenizer.json: model.{} is {}; this program knows BPE without one",
                              key, quote(affix)));
  if (const json& x = at(model, "dropout"); x.is_number() && x.get<double>() != 0)
    return fail(BITNET_UNSUPPORTED,
                "tokenizer.json: model.dropout leaves merges away by chance, which this program "
                "does not; set it to null");
  return {};
}

// Checks tokens of other files, which transformers would add.
result<void> check_expected(const vocabulary& v, const tokenizer_hints& hints) {
  for (const auto& [text, id] : hints.expected)
    if (const auto found = v.ids.find(text); found == v.ids.end() || found->second != id)
      return bad_tokenizer(
          fmt::format("token {} is not there with the id {}, which tokenizer_config.json or "
                      "added_tokens.json gives it; save the tokenizer again with transformers",
                      quote(text), id));
  for (const uint32_t id : hints.ends)
    if (id >= hints.n_vocab)
      return bad_data(fmt::format("eos_token_id has the id {}, but the embedding has {} rows", id,
                                  hints.n_vocab));
  return {};
}

// Reads "a b", or ["a", "b"] in newer files.
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

// Scores for SentencePiece, which merges the pair whose piece has the best score: by the rank of
// the merge that makes it.
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

// Whether SentencePiece, with scores, merges as the list does. It joins any two pieces whose text
// is a piece, as in lists that were made from scores; in a trained list each piece must have only
// one such pair.
bool scores_say_all(const vocabulary& v, const std::vector<std::string>& merges) {
  const std::unordered_set<std::string_view> listed(merges.begin(), merges.end());
  std::string pair;
  for (size_t i = 0; i < v.texts.size(); ++i) {
    const std::string_view text = v.texts[i];
    // Longer texts occur only in broken files and would take long.
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

// Whether the components only mark blanks.
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

// Old files lack the type; only BPE has merges.
result<void> check_type(const json& model) {
  const std::string type = text_at(model, "type");
  if (type == "BPE" || (type.empty() && model.contains("merges"))) return {};
  return fail(
      BITNET_UNSUPPORTED,
      fmt::format("tokenizer.json holds a tokenizer of type {}; expected BPE", quote(type)));
}

// Adds tokens up to one per row of the embedding.
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

// Writes it as SentencePiece, whose scores stand for merges.
result<void> write_pieces(const json& file, const std::vector<std::string>& merges, vocabulary& v,
                          gguf::metadata_builder& out) {
  const auto has_inner_blanks = [&v] {
    for (size_t i = 0; i < v.texts.size(); ++i)
      if (v.types[i] == normal && v.texts[i].find("\xE2\x96\x81", 1) != std::string::npos)
        return true;
    return false;
  };
  const auto marks = marks_of(file, has_inner_blanks);
  if (!marks) return std::unexpected(marks.error());
  mark_bytes(v);
  out.text("tokenizer.ggml.model", "llama");
  out.text("tokenizer.ggml.pre", "default");
  out.f32s("tokenizer.ggml.scores", scores_of(v, merges));
  out.boolean("tokenizer.ggml.add_space_prefix", *marks != blank_before::never);
  // Keys of this program: docs/reference/tokenizers.md#sentencepiece
  if (*marks == blank_before::unless_there)
    out.text("tokenizer.bitnet.space_prefix", "unless-there");
  if (*marks == blank_before::unless_there_at_beginning)
    out.text("tokenizer.bitnet.space_prefix", "unless-there-at-beginning");
  return {};
}

// Writes it as BPE over characters: docs/reference/tokenizers.md#bpe-over-characters
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

// Checks that the post_processor adds the token that GGUF knows by that name.
result<std::optional<uint32_t>> put_by(const char* what, std::optional<uint32_t> framed,
                                       std::optional<uint32_t> named,
                                       const tokenizer_hints& hints) {
  if (!framed || framed == named) return named;
  if (named && hints.chat_template.contains(what))
    return fail(BITNET_UNSUPPORTED,
                fmt::format("tokenizer.json: post_processor puts token {}, but {} of the chat "
                            "template is token {}; this program knows one of that kind",
                            *framed, what, *named));
  return framed;
}

// Writes all tokens that end a text, if there are more than the one with a key of GGUF.
void write_ends(std::optional<uint32_t> eos, std::optional<uint32_t> named,
                const tokenizer_hints& hints, gguf::metadata_builder& out) {
  std::vector<int32_t> all;
  const auto add = [&](std::optional<uint32_t> id) {
    if (id && std::ranges::find(all, static_cast<int32_t>(*id)) == all.end())
      all.push_back(static_cast<int32_t>(*id));
  };
  add(eos);
  add(named);
  for (const uint32_t id : hints.ends) add(id);
  if (all.size() > 1) out.i32s("tokenizer.ggml.eos_token_ids", all);
}

result<void> write_special_tokens(const json& file, const vocabulary& v,
                                  const tokenizer_hints& hints, gguf::metadata_builder& out,
                                  members_left_out& left_out) {
  const auto framed = framing_of(file);
  if (!framed) return std::unexpected(framed.error());
  const auto bos = put_by("bos_token", framed->first, id_of(v, hints.bos, hints.bos_text), hints);
  if (!bos) return std::unexpected(bos.error());
  const auto named = id_of(v, hints.eos, hints.eos_text);
  const auto eos = put_by("eos_token", framed->last, named, hints);
  if (!eos) return std::unexpected(eos.error());
  const auto id = [&](const char* key, std::optional<uint32_t> found) {
    if (found) out.u32(key, *found);
  };
  id("tokenizer.ggml.bos_token_id", *bos);
  id("tokenizer.ggml.eos_token_id", *eos);
  id("tokenizer.ggml.padding_token_id", id_of(v, hints.padding, hints.padding_text));
  id("tokenizer.ggml.unknown_token_id", id_of(v, std::nullopt, hints.unknown_text));
  out.boolean("tokenizer.ggml.add_bos_token", framed->first.has_value());
  if (framed->last) out.boolean("tokenizer.ggml.add_eos_token", true);
  write_ends(*eos, named, hints, out);
  if (!v.flags.empty()) out.i32s("tokenizer.bitnet.added_token_flags", v.flags);
  const auto check = [&](const char* key, std::optional<bool> said, bool is) {
    if (said.value_or(is) != is)
      left_out.push_back({"tokenizer_config.json", key,
                          "the post_processor of tokenizer.json says otherwise, and decides"});
  };
  check("add_bos_token", hints.add_bos, framed->first.has_value());
  check("add_eos_token", hints.add_eos, framed->last.has_value());
  return {};
}

}  // namespace

result<std::string> read_tokenizer(std::string_view tokenizer_json, const tokenizer_hints& hints,
                                   gguf::metadata_builder& out, members_left_out& left_out) {
  const auto parsed = parse_object(tokenizer_json, "tokenizer.json");
  if (!parsed) return std::unexpected(parsed.error());
  const json& file = *parsed;
  const json& model = at(file, "model");
  if (auto ok = check_members(file, "tokenizer.json", "", left_out); !ok)
    return std::unexpected(ok.error());
  for (auto ok : {check_type(model), check_model(model)})
    if (!ok) return std::unexpected(ok.error());
  auto v = read_tokens(file);
  if (!v) return std::unexpected(v.error());
  const auto merges = read_merges(file);
  if (!merges) return std::unexpected(merges.error());
  if (auto ok = check_expected(*v, hints); !ok) return std::unexpected(ok.error());
  if (auto ok = pad(*v, hints.n_vocab); !ok) return std::unexpected(ok.error());
  const bool fallback = true_at(model, "byte_fallback");
  const bool characters = fallback && only_marks_blanks(file) && !scores_say_all(*v, *merges);
  const bool spm = fallback && !characters;
  result<void> written;
  if (spm) written = write_pieces(file, *merges, *v, out);
  if (characters) written = write_characters(*merges, *v, out);
  if (!fallback) written = write_byte_level(file, *merges, out);
  if (!written) return std::unexpected(written.error());
  out.texts("tokenizer.ggml.tokens", v->texts);
  out.i32s("tokenizer.ggml.token_type", v->types);
  if (auto ok = write_special_tokens(file, *v, hints, out, left_out); !ok)
    return std::unexpected(ok.error());
  if (!hints.chat_template.empty()) out.text("tokenizer.chat_template", hints.chat_template);
  return std::string(spm ? "llama" : "gpt2");
}

}  // namespace bitnet::huggingface
