#pragma once
// Converts text to token ids and back, for the kinds of vocabularies in GGUF files.
//
// Kinds   BPE (tokenizer.ggml.model "gpt2", "gemma4" or "whitespace"), SPM ("llama") and WordPiece
//         ("bert"); docs/reference/tokenizers.md. WordPiece loses the spacing of a text and, by
//         default, its case and accents: decode gives plain words. The pre-tokenizer "whitespace"
//         loses white space.
// Errors  BITNET_BAD_DATA for a broken vocabulary; BITNET_INVALID_ARGUMENT for text that is not
//         UTF-8 (SPM turns such bytes into byte tokens).
// Threads immutable after make; every member may be called from any thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bitnet::tokenizer {

using token = int32_t;

enum class token_type : uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

// Flags of special tokens.
namespace token_flag {
inline constexpr uint8_t lstrip = 1, rstrip = 2;  // takes the blanks before it; behind it
inline constexpr uint8_t single_word = 4;         // only if no letter of a word touches it
}  // namespace token_flag

// Tokens for infilling: before the text that precedes the gap, before the text behind it, and
// before the filling; then padding, and the begin of a repository and of each of its files.
template <class Id>
struct infill_tokens {
  std::optional<Id> pre, suf, mid, pad, rep, sep;
};

// A GGUF file's unchecked data. Empty vectors and nullopt: not in the file.
struct vocabulary_data {
  std::string model;
  std::string pre;  // "" if absent
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
  std::vector<std::string> merges;
  std::optional<int64_t> bos, eos, eot, eom, unknown, separator, padding;
  infill_tokens<int64_t> infill;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
  std::optional<bool> compose;        // BPE: text is normalised to NFC
  std::optional<bool> lowercase;      // WordPiece, and BPE of the pre-tokenizer "whitespace"
  std::optional<bool> strip_accents;  // WordPiece; default: as lowercase
  std::string chat_template;
  std::vector<int32_t> ends;   // further tokens that end a text
  std::vector<int32_t> flags;  // pairs: a token and the sum of its token_flags
  std::string space_prefix;    // SPM: "", "unless-there" or "unless-there-at-beginning"
  std::string architecture;    // a bitnet* file without `pre` uses llama-bpe
};

// A range of bytes in a text.
struct text_range {
  std::size_t begin;
  std::size_t end;
};

struct encode_options {
  enum class bos : uint8_t { never, if_model_asks, always };
  bos add_bos = bos::never;
  bool parse_special = false;  // control tokens written in the text become their ids
  // Ranges in which special tokens are plain text: ascending and not adjacent. A control token that
  // overlaps one is text, and so is a user-defined one that marks turns.
  std::span<const text_range> plain = {};
};

class tokenizer {
 public:
  static result<tokenizer> make(vocabulary_data data);
  tokenizer(tokenizer&&) noexcept;
  tokenizer& operator=(tokenizer&&) noexcept;
  ~tokenizer();

  [[nodiscard]] result<std::vector<token>> encode(std::string_view text,
                                                  const encode_options& options) const;
  // Bytes of all ids together; may end inside a UTF-8 character. Unknown ids are an error.
  // `special`: control tokens give their text, else nothing.
  [[nodiscard]] result<std::string> decode(std::span<const token> ids, bool special) const;
  // Bytes of one id, for streaming. `first`: at the start of a text (SPM drops one space there).
  [[nodiscard]] result<std::string> piece(token id, bool special, bool first) const;

  [[nodiscard]] uint32_t size() const;
  [[nodiscard]] std::optional<token> bos() const;
  [[nodiscard]] std::optional<token> eos() const;
  [[nodiscard]] std::optional<token> eot() const;
  [[nodiscard]] std::optional<token> unknown() const;
  [[nodiscard]] std::optional<token> padding() const;
  // docs/reference/tokenizers.md#infilling
  [[nodiscard]] const infill_tokens<token>& infill() const;
  [[nodiscard]] std::optional<token> find(
      std::string_view token_text) const;  // raw vocabulary text
  [[nodiscard]] bool adds_bos() const;
  [[nodiscard]] bool adds_eos() const;            // behind a whole text; encode() does not
  [[nodiscard]] bool is_special(token id) const;  // a control or user-defined token
  // docs/reference/tokenizers.md#end-tokens
  [[nodiscard]] bool ends_generation(token id) const;
  [[nodiscard]] std::string_view kind() const;  // tokenizer.ggml.model
  [[nodiscard]] std::string_view chat_template() const;
  [[nodiscard]] std::string_view note() const;  // "" or a warning, e.g. an unknown pre-tokenizer

 private:
  struct contents;
  explicit tokenizer(std::unique_ptr<contents> c);
  std::unique_ptr<contents> contents_;
};

// Splits a byte stream into complete UTF-8 characters: push returns complete ones and keeps the
// rest. Invalid bytes become U+FFFD.
class utf8_stream {
 public:
  std::string push(std::string_view bytes);
  std::string finish();  // the rest; U+FFFD if incomplete

 private:
  std::string pending_;
};

}  // namespace bitnet::tokenizer
