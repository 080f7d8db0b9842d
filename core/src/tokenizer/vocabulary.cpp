#include "tokenizer/vocabulary.hpp"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <utility>

#include "tokenizer/end_tokens.hpp"
#include "tokenizer/infill_tokens.hpp"
#include "tokenizer/utf8.hpp"

namespace bitnet::tokenizer {
namespace {

// The longest in use has 256 bytes (runs of blanks); the limit keeps look-ups in hostile files
// short.
constexpr size_t longest_token_text = 4096;

std::string token_name(size_t id) {
  return fmt::format("token {}", id);
}

result<void> check_texts(const vocabulary& v) {
  if (v.texts.empty()) {
    return fail(BITNET_BAD_DATA, "the vocabulary is empty: tokenizer.ggml.tokens is missing");
  }
  if (v.texts.size() > static_cast<size_t>(std::numeric_limits<token>::max())) {
    return fail(BITNET_BAD_DATA, "the vocabulary has more tokens than a 32-bit id can count");
  }
  for (size_t i = 0; i < v.texts.size(); ++i) {
    const std::string& text = v.texts[i];
    if (text.empty()) return fail(BITNET_BAD_DATA, fmt::format("{} has no text", token_name(i)));
    if (text.size() > longest_token_text) {
      return fail(BITNET_BAD_DATA, fmt::format("{} is {} bytes long; at most {} are allowed",
                                               token_name(i), text.size(), longest_token_text));
    }
    if (v.kind == vocabulary_kind::spm) continue;
    if (const auto at = first_invalid_utf8(text)) {
      return fail(BITNET_BAD_DATA, fmt::format("{} {} is not UTF-8 at its byte {}", token_name(i),
                                               in_quotes(text), *at));
    }
  }
  return {};
}

// Jina's Chinese vocabulary has a token for U+0000; a converter that ends texts at zero bytes wrote
// it as an empty text.
void name_empty_texts(vocabulary& v) {
  for (size_t i = 0; i < v.texts.size(); ++i) {
    if (v.texts[i].empty()) v.texts[i] = fmt::format("[EMPTY_{}]", i);
  }
}

result<void> index_texts(vocabulary& v) {
  v.ids.reserve(v.texts.size());
  for (size_t i = 0; i < v.texts.size(); ++i) {
    const auto [entry, fresh] = v.ids.emplace(v.texts[i], static_cast<token>(i));
    if (!fresh) {
      return fail(BITNET_BAD_DATA,
                  fmt::format("{} repeats the text {} of {}", token_name(i), in_quotes(v.texts[i]),
                              token_name(static_cast<size_t>(entry->second))));
    }
    v.longest_text = std::max(v.longest_text, v.texts[i].size());
  }
  return {};
}

// The byte of "<0xHH>".
std::optional<unsigned char> byte_of(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(3, 2)) {
    const int nibble = c >= '0' && c <= '9'   ? c - '0'
                       : c >= 'A' && c <= 'F' ? c - 'A' + 10
                       : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                              : -1;
    if (nibble < 0) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(nibble);
  }
  return static_cast<unsigned char>(value);
}

result<void> check_types(vocabulary& v, const std::vector<int32_t>& types) {
  if (!types.empty() && types.size() != v.texts.size()) {
    return fail(BITNET_BAD_DATA,
                fmt::format("tokenizer.ggml.token_type has {} entries for {} tokens", types.size(),
                            v.texts.size()));
  }
  v.types.assign(v.texts.size(), token_type::normal);
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] < 0 || types[i] > static_cast<int32_t>(token_type::byte)) {
      return fail(BITNET_BAD_DATA,
                  fmt::format("{} has the type {}; known are 1 (normal) to 6 (byte)", token_name(i),
                              types[i]));
    }
    // Some converters write 0 for "undefined": a token that is never shown or generated.
    v.types[i] = types[i] == 0 ? token_type::unused : static_cast<token_type>(types[i]);
  }
  return {};
}

// If merges join characters, llama.cpp's converters write byte tokens of some models as normal.
result<void> check_byte_tokens(vocabulary& v, bool types_known) {
  v.byte_tokens.fill(-1);
  const bool may_be_normal = !types_known || v.kind == vocabulary_kind::bpe;
  for (size_t i = 0; i < v.texts.size(); ++i) {
    const auto byte = byte_of(v.texts[i]);
    if (may_be_normal && byte && v.types[i] == token_type::normal) v.types[i] = token_type::byte;
    if (v.types[i] != token_type::byte) continue;
    if (!byte) {
      return fail(
          BITNET_BAD_DATA,
          fmt::format("{} is a byte token but its text is {} and not of the form \"<0xHH>\"",
                      token_name(i), in_quotes(v.texts[i])));
    }
    if (v.byte_tokens[*byte] < 0) v.byte_tokens[*byte] = static_cast<token>(i);
  }
  return {};
}

result<void> check_scores(vocabulary& v, std::vector<float> scores) {
  if (scores.size() != v.texts.size()) {
    return fail(BITNET_BAD_DATA, fmt::format("tokenizer.ggml.scores has {} entries for {} tokens",
                                             scores.size(), v.texts.size()));
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) {
      return fail(BITNET_BAD_DATA, fmt::format("{} has the score NaN", token_name(i)));
    }
  }
  v.scores = std::move(scores);
  return {};
}

struct special_id {
  const char* key;
  std::optional<int64_t> given;
  std::optional<token> fallback;  // if the file lacks the key
  std::optional<token>* out;
};

result<void> check_special_ids(vocabulary& v, const vocabulary_data& d) {
  // Defaults that readers of these files have always used;
  // docs/reference/tokenizers.md#special-tokens
  // A WordPiece vocabulary finds its special tokens by text.
  struct by_kind {
    std::optional<token> bpe, spm;
    const char* wordpiece;
  };
  const auto usual = [&](const by_kind& k) {
    if (d.model == "gemma4") return std::optional<token>();
    if (v.kind == vocabulary_kind::wordpiece) return v.find(k.wordpiece);
    return v.kind == vocabulary_kind::bpe ? k.bpe : k.spm;
  };
  constexpr std::optional<token> none;
  std::optional<token> separator;  // checked, not used
  const special_id all[] = {
      {"bos_token_id", d.bos, usual({11, 1, "[CLS]"}), &v.bos},
      {"eos_token_id", d.eos, usual({11, 2, ""}), &v.eos},
      {"eot_token_id", d.eot, std::nullopt, &v.eot},
      {"eom_token_id", d.eom, std::nullopt, &v.eom},
      {"unknown_token_id", d.unknown, usual({none, 0, "[UNK]"}), &v.unknown},
      {"seperator_token_id", d.separator, std::nullopt, &separator},
      {"padding_token_id", d.padding, usual({none, none, "[PAD]"}), &v.padding},
      {"fim_pre_token_id", d.infill.pre, std::nullopt, &v.infill.pre},
      {"fim_suf_token_id", d.infill.suf, std::nullopt, &v.infill.suf},
      {"fim_mid_token_id", d.infill.mid, std::nullopt, &v.infill.mid},
      {"fim_pad_token_id", d.infill.pad, std::nullopt, &v.infill.pad},
      {"fim_rep_token_id", d.infill.rep, std::nullopt, &v.infill.rep},
      {"fim_sep_token_id", d.infill.sep, std::nullopt, &v.infill.sep},
  };
  const auto n = static_cast<int64_t>(v.texts.size());
  for (const special_id& s : all) {
    if (s.given && (*s.given == -1 || *s.given == 0xFFFFFFFF)) continue;  // written for "none"
    if (s.given && (*s.given < 0 || *s.given >= n)) {
      return fail(BITNET_BAD_DATA,
                  fmt::format("tokenizer.ggml.{} is {} but the vocabulary has {} tokens", s.key,
                              *s.given, n));
    }
    if (s.given) {
      *s.out = static_cast<token>(*s.given);
      // A file without types still shows by its keys which tokens are no text.
      if (d.types.empty()) {
        v.types[static_cast<size_t>(*s.given)] =
            s.out == &v.unknown ? token_type::unknown : token_type::control;
      }
    } else if (s.fallback && *s.fallback < n) {
      *s.out = s.fallback;
    }
  }
  return {};
}

result<void> check_ends(vocabulary& v, const std::vector<int32_t>& ends) {
  for (const int32_t id : ends) {
    if (id < 0 || static_cast<size_t>(id) >= v.texts.size()) {
      return fail(
          BITNET_BAD_DATA,
          fmt::format("tokenizer.ggml.eos_token_ids has {} but the vocabulary has {} tokens", id,
                      v.texts.size()));
    }
    v.ends.insert(id);
  }
  return {};
}

result<void> check_flags(vocabulary& v, const std::vector<int32_t>& pairs) {
  constexpr int32_t all = token_flag::lstrip | token_flag::rstrip | token_flag::single_word;
  const auto bad = [](const std::string& what) {
    return fail(BITNET_BAD_DATA, fmt::format("tokenizer.bitnet.added_token_flags {}", what));
  };
  if (pairs.size() % 2 != 0) return bad("has no flags for its last token");
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const int32_t id = pairs[i], flags = pairs[i + 1];
    if (id < 0 || static_cast<size_t>(id) >= v.texts.size())
      return bad(fmt::format("has {} but the vocabulary has {} tokens", id, v.texts.size()));
    if (flags < 0 || flags > all)
      return bad(fmt::format("has the flags {} for token {}; expected 0 to {}", flags, id, all));
    v.flags[id] = static_cast<uint8_t>(flags);
  }
  return {};
}

result<void> check_space_prefix(vocabulary& v, const std::string& rule) {
  if (rule.empty()) return {};
  v.prefix_at_beginning = rule == "unless-there-at-beginning";
  v.prefix_unless_there = v.prefix_at_beginning || rule == "unless-there";
  if (v.prefix_unless_there) return {};
  return fail(BITNET_UNSUPPORTED,
              fmt::format("tokenizer.bitnet.space_prefix is {}; expected \"unless-there\" or "
                          "\"unless-there-at-beginning\"",
                          in_quotes(rule)));
}

}  // namespace

std::optional<token> vocabulary::find(std::string_view text) const {
  const auto found = ids.find(text);
  return found == ids.end() ? std::nullopt : std::optional<token>(found->second);
}

bool vocabulary::is_special(token id) const {
  const token_type t = type(id);
  return t == token_type::control || t == token_type::unknown || t == token_type::user_defined;
}

bool vocabulary::has_byte_tokens() const {
  return kind == vocabulary_kind::spm || letters != alphabet::bytes;
}

result<vocabulary_kind> kind_of(std::string_view model) {
  if (model == "gpt2" || model == "gemma4" || model == "whitespace") return vocabulary_kind::bpe;
  if (model == "llama") return vocabulary_kind::spm;
  if (model == "bert") return vocabulary_kind::wordpiece;
  if (model.empty()) {
    return fail(BITNET_BAD_DATA,
                "the file has no tokenizer.ggml.model; convert the model again with its tokenizer");
  }
  return fail(BITNET_UNSUPPORTED,
              fmt::format("tokenizer.ggml.model is {}{}; supported are \"gpt2\", \"gemma4\" and "
                          "\"whitespace\" (BPE), \"llama\" (SPM) and \"bert\" (WordPiece)",
                          in_quotes(model), model == "t5" ? " (Unigram)" : ""));
}

result<vocabulary> check_vocabulary(vocabulary_data& data, const pre_rule& rule) {
  vocabulary v;
  const auto kind = kind_of(data.model);
  if (!kind) return std::unexpected(kind.error());
  v.kind = *kind;
  v.texts = std::move(data.tokens);
  const bool spm = v.kind == vocabulary_kind::spm;
  const bool bpe = v.kind == vocabulary_kind::bpe;
  if (bpe) v.letters = rule.letters;
  v.add_bos = data.add_bos.value_or(!bpe || rule.bos != begin_rule::if_asked) ||
              (bpe && rule.bos == begin_rule::always);
  v.add_eos = data.add_eos.value_or(false);
  v.add_space_prefix = spm && data.add_space_prefix.value_or(true);

  if (v.letters == alphabet::characters) name_empty_texts(v);
  result<void> checked = check_texts(v);
  if (checked) checked = index_texts(v);
  if (checked) checked = check_types(v, data.types);
  if (checked && v.has_byte_tokens()) checked = check_byte_tokens(v, !data.types.empty());
  if (checked && spm) checked = check_scores(v, std::move(data.scores));
  if (checked && !spm && !data.scores.empty() && data.scores.size() != v.texts.size()) {
    checked = check_scores(v, std::move(data.scores));
  }
  if (checked) checked = check_special_ids(v, data);
  if (checked) checked = check_ends(v, data.ends);
  if (checked) checked = check_flags(v, data.flags);
  if (checked && spm) checked = check_space_prefix(v, data.space_prefix);
  if (!checked) return std::unexpected(checked.error());
  find_infill_tokens(v);
  find_end_tokens(v);
  return v;
}

}  // namespace bitnet::tokenizer
