#include "tokenizer/tokenizer.hpp"

#include <fmt/core.h>

#include <utility>

#include "tokenizer/blanks.hpp"
#include "tokenizer/bpe.hpp"
#include "tokenizer/byte_table.hpp"
#include "tokenizer/pre_tokenizer.hpp"
#include "tokenizer/special_tokens.hpp"
#include "tokenizer/spm.hpp"
#include "tokenizer/token_flags.hpp"
#include "tokenizer/unicode_forms.hpp"
#include "tokenizer/utf8.hpp"
#include "tokenizer/vocabulary.hpp"
#include "tokenizer/wordpiece.hpp"

namespace bitnet::tokenizer {
namespace {

// Positions in a text are 32 bits wide, and an SPM text can grow to three times its size.
constexpr size_t longest_input = size_t{256} << 20;

struct bpe_parts {
  pre_tokenizer words;
  bpe merger;
};

}  // namespace

struct tokenizer::contents {
  std::string model;
  vocabulary v;
  special_tokens specials;
  std::optional<bpe_parts> by_bpe;  // BPE only
  bool compose = false;             // BPE: normalise to NFC
  bool lowercase = false;           // BPE: to lower case
  bert_options normal;              // WordPiece
  std::string chat_template;
  std::string note;

  [[nodiscard]] bool spaced_after(token id) const {
    return v.add_space_prefix && !v.prefix_at_beginning && v.is_special(id);
  }

  result<void> encode_plain(std::string_view text, bool space_before,
                            std::vector<token>& out) const {
    if (v.kind == vocabulary_kind::spm) {
      const bool is_there = v.prefix_unless_there && text.starts_with(' ');
      return encode_spm(v, text, space_before && !is_there, out);
    }
    if (v.kind == vocabulary_kind::wordpiece) return encode_wordpiece(v, normal, text, out);
    std::string changed;
    const auto change_to = [&](std::string to) { text = changed = std::move(to); };
    if (compose) change_to(composed(text));
    if (lowercase) change_to(lowercased(text));
    if (v.letters == alphabet::marked_characters) change_to(with_marked_blanks(text, false));
    const auto words = by_bpe->words.split(text);
    if (!words) return std::unexpected(words.error());
    for (const std::string_view word : *words) {
      if (auto done = by_bpe->merger.encode(word, out); !done) return done;
    }
    return {};
  }

  // Blanks separate WordPiece words, and special tokens are words.
  [[nodiscard]] std::string special_text(const std::string& text) const {
    return v.kind == vocabulary_kind::wordpiece ? fmt::format(" {}", text) : text;
  }

  [[nodiscard]] std::string bytes_of(token id, bool special) const {
    const std::string& text = v.texts[static_cast<size_t>(id)];
    switch (v.type(id)) {
      case token_type::unused:
        return {};
      case token_type::control:
      case token_type::unknown:
        return special ? special_text(text) : std::string();
      case token_type::user_defined:
        return special_text(text);
      case token_type::byte:
        if (!v.has_byte_tokens()) break;
        for (int b = 0; b < 256; ++b) {
          if (v.byte_tokens[b] == id) return std::string(1, static_cast<char>(b));
        }
        return {};
      case token_type::normal:
        break;
    }
    if (v.kind == vocabulary_kind::spm || v.letters == alphabet::marked_characters) {
      return with_plain_blanks(text);
    }
    if (v.kind == vocabulary_kind::wordpiece) return wordpiece_text_to_bytes(text);
    if (v.letters == alphabet::characters) return text;
    return text_to_bytes(text).value_or(text);
  }

  // `first`: drops the space that encode adds before a text.
  [[nodiscard]] result<std::string> piece(token id, bool special, bool first) const {
    if (id < 0 || static_cast<size_t>(id) >= v.texts.size()) {
      return fail(
          BITNET_INVALID_ARGUMENT,
          fmt::format("token id {} is outside the vocabulary of {} tokens", id, v.texts.size()));
    }
    std::string out = bytes_of(id, special);
    const bool put =
        v.kind == vocabulary_kind::wordpiece || (v.add_space_prefix && !v.is_special(id));
    if (first && put && out.starts_with(' ')) out.erase(0, 1);
    return out;
  }
};

tokenizer::tokenizer(std::unique_ptr<contents> c) : contents_(std::move(c)) {}
tokenizer::tokenizer(tokenizer&&) noexcept = default;
tokenizer& tokenizer::operator=(tokenizer&&) noexcept = default;
tokenizer::~tokenizer() = default;

result<tokenizer> tokenizer::make(vocabulary_data data) {
  const auto kind = kind_of(data.model);
  if (!kind) return std::unexpected(kind.error());
  const bool is_bpe = *kind == vocabulary_kind::bpe;
  pre_rule rule;
  // Other kinds of BPE have one rule by name, whatever `pre` says.
  if (is_bpe) {
    rule = pre_rule_for(data.model == "gpt2" ? data.pre : data.model, data.architecture);
  }
  if (rule.bos == begin_rule::always && data.add_bos == false) {
    rule.note =
        "tokenizer.ggml.add_bos_token is false, but models of this vocabulary need the token; it "
        "is put";
  }
  auto v = check_vocabulary(data, rule);
  if (!v) return std::unexpected(std::move(v.error()));

  std::optional<bpe_parts> by_bpe;
  if (is_bpe) {
    auto words = pre_tokenizer::make(rule.split);
    if (!words) return std::unexpected(std::move(words.error()));
    auto merger = bpe::make(*v, data.merges, rule.whole);
    if (!merger) return std::unexpected(std::move(merger.error()));
    by_bpe.emplace(std::move(*words), std::move(*merger));
  }
  special_tokens specials(*v);
  const bool small_letters =
      is_bpe && v->letters == alphabet::characters && data.lowercase.value_or(false);
  const bool lowercase = data.lowercase.value_or(true);
  return tokenizer(std::unique_ptr<contents>(
      new contents{.model = std::move(data.model),
                   .v = std::move(*v),
                   .specials = std::move(specials),
                   .by_bpe = std::move(by_bpe),
                   .compose = data.compose.value_or(false),
                   .lowercase = small_letters,
                   .normal = {lowercase, data.strip_accents.value_or(lowercase)},
                   .chat_template = std::move(data.chat_template),
                   .note = std::move(rule.note)}));
}

result<std::vector<token>> tokenizer::encode(std::string_view text,
                                             const encode_options& options) const {
  const contents& c = *contents_;
  if (text.size() > longest_input) {
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("the text is {} bytes long; at most {} can be tokenized at once",
                            text.size(), longest_input));
  }
  if (c.v.kind != vocabulary_kind::spm) {
    if (const auto at = first_invalid_utf8(text)) {
      return fail(BITNET_INVALID_ARGUMENT,
                  fmt::format("the text is not UTF-8: byte {} at offset {}; convert it to UTF-8",
                              hex_byte(static_cast<unsigned char>(text[*at])), *at));
    }
  }
  std::vector<token> out;
  const bool wants_bos = options.add_bos == encode_options::bos::always ||
                         (options.add_bos == encode_options::bos::if_model_asks && c.v.add_bos);
  if (wants_bos && c.v.bos) out.push_back(*c.v.bos);
  if (options.add_bos == encode_options::bos::always && !c.v.bos) {
    return fail(BITNET_INVALID_ARGUMENT,
                "the vocabulary has no token for the begin of a text; encode without one");
  }
  bool space_before = c.v.add_space_prefix;
  for (const fragment& f :
       with_flags(c.v, c.specials.cut(text, options.parse_special, options.plain))) {
    if (f.id >= 0) {
      out.push_back(f.id);
      space_before = c.spaced_after(f.id);
      continue;
    }
    if (auto done = c.encode_plain(f.text, space_before, out); !done) {
      return std::unexpected(std::move(done.error()));
    }
    space_before = false;
  }
  return out;
}

result<std::string> tokenizer::decode(std::span<const token> ids, bool special) const {
  std::string out;
  bool first = true;
  for (size_t i = 0; i < ids.size(); ++i) {
    auto bytes = contents_->piece(ids[i], special, first);
    if (!bytes) return pass_on(std::move(bytes), fmt::format("token {} of the text", i));
    out += *bytes;
    // After a WordPiece word without text the next one is still the first.
    first = contents_->v.kind == vocabulary_kind::wordpiece ? out.empty()
                                                            : contents_->spaced_after(ids[i]);
  }
  return out;
}

result<std::string> tokenizer::piece(token id, bool special, bool first) const {
  return contents_->piece(id, special, first);
}

uint32_t tokenizer::size() const {
  return static_cast<uint32_t>(contents_->v.texts.size());
}
std::optional<token> tokenizer::bos() const {
  return contents_->v.bos;
}
std::optional<token> tokenizer::eos() const {
  return contents_->v.eos;
}
std::optional<token> tokenizer::eot() const {
  return contents_->v.eot;
}
std::optional<token> tokenizer::unknown() const {
  return contents_->v.unknown;
}
std::optional<token> tokenizer::padding() const {
  return contents_->v.padding;
}
const infill_tokens<token>& tokenizer::infill() const {
  return contents_->v.infill;
}
std::optional<token> tokenizer::find(std::string_view text) const {
  return contents_->v.find(text);
}
bool tokenizer::adds_bos() const {
  return contents_->v.add_bos;
}
bool tokenizer::adds_eos() const {
  return contents_->v.add_eos;
}
bool tokenizer::is_special(token id) const {
  if (id < 0 || static_cast<uint32_t>(id) >= size()) return false;
  const token_type type = contents_->v.type(id);
  return type == token_type::control || type == token_type::user_defined;
}
bool tokenizer::ends_generation(token id) const {
  return contents_->v.ends.contains(id);
}
std::string_view tokenizer::kind() const {
  return contents_->model;
}
std::string_view tokenizer::chat_template() const {
  return contents_->chat_template;
}
std::string_view tokenizer::note() const {
  return contents_->note;
}

}  // namespace bitnet::tokenizer
