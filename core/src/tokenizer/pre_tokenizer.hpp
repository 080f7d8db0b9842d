#pragma once
// Splits a text into words by regular expressions; BPE never merges across words.
//
// Rule     The steps of a pre-tokenizer run one after the other; each splits the pieces of the
//          previous one. A match is a piece, and so is the text between two matches.
// Needs    valid UTF-8.
// Cost     linear in the text for every rule of the table; the work per position is limited.
// Errors   BITNET_INVALID_ARGUMENT when the work limit of the expression engine is reached.
// Threads  immutable after make.
// Source   docs/reference/tokenizers.md#splitting-rules

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bitnet::tokenizer {

struct split_step {
  enum ends : uint8_t {
    cut_around,    // a match is a separate piece
    cut_before,    // a match begins a piece, which includes the text that follows
    only_matches,  // a match is a piece; the text between matches is dropped
  };
  std::string_view expression;
  ends where = cut_around;

  // Implicit, since most steps are only an expression.
  constexpr split_step(std::string_view e)
      : expression(e) {}                                  // NOLINT(google-explicit-constructor)
  constexpr split_step(const char* e) : expression(e) {}  // NOLINT(google-explicit-constructor)
  constexpr split_step(std::string_view e, ends w) : expression(e), where(w) {}
};

// The letters that merges join.
enum class alphabet : uint8_t {
  bytes,              // each byte written as one character
  characters,         // characters of the text
  marked_characters,  // characters of the text, with U+2581 for a blank
};

// Which words need no merges if they are tokens.
enum class whole_words : uint8_t { none, line_ends, all };

// Whether a text gets the begin token.
enum class begin_rule : uint8_t {
  if_asked,    // if the file says so
  by_default,  // unless the file says no
  always,
};

// The meaning of a name in tokenizer.ggml.pre.
struct pre_rule {
  std::vector<split_step> split;
  alphabet letters = alphabet::bytes;
  whole_words whole = whole_words::none;
  begin_rule bos = begin_rule::if_asked;
  std::string note;  // "", or why this rule was chosen
};

[[nodiscard]] pre_rule pre_rule_for(std::string_view pre, std::string_view architecture);

[[nodiscard]] std::vector<std::string_view> pre_tokenizer_names();

class pre_tokenizer {
 public:
  // interpreted: for platforms without a compiler for expressions; same result, slower.
  enum class engine : uint8_t { compiled, interpreted };
  static result<pre_tokenizer> make(const std::vector<split_step>& steps,
                                    engine how = engine::compiled);
  pre_tokenizer(pre_tokenizer&&) noexcept;
  pre_tokenizer& operator=(pre_tokenizer&&) noexcept;
  ~pre_tokenizer();

  [[nodiscard]] result<std::vector<std::string_view>> split(std::string_view text) const;

 private:
  struct code_deleter {
    void operator()(void* code) const noexcept;
  };
  struct step {
    std::unique_ptr<void, code_deleter> code;  // pcre2_code, compiled
    split_step::ends where;
  };
  pre_tokenizer();
  std::vector<step> steps_;
};

}  // namespace bitnet::tokenizer
