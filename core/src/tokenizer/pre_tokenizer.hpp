#pragma once
// Splits a text into the words that BPE never merges across, by regular expressions.
//
// Rule     the steps of a pre-tokenizer apply one after the other; each splits the pieces that the
//          one before left. What its expression matches is a piece, and so is what it does not
//          match between two matches.
// Needs    valid UTF-8.
// Cost     linear in the text for every rule of the table; the work at one place is limited.
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
    cut_around,    // a match is a piece of its own
    cut_before,    // a match begins a piece, and what follows belongs to it
    only_matches,  // a match is a piece, and what lies between matches goes away
  };
  std::string_view expression;
  ends where = cut_around;

  // Implicit: most steps are an expression and nothing else.
  constexpr split_step(std::string_view e)
      : expression(e) {}                                  // NOLINT(google-explicit-constructor)
  constexpr split_step(const char* e) : expression(e) {}  // NOLINT(google-explicit-constructor)
  constexpr split_step(std::string_view e, ends w) : expression(e), where(w) {}
};

// What merges join.
enum class alphabet : uint8_t {
  bytes,              // each written as one character
  characters,         // of the text
  marked_characters,  // of the text, with U+2581 for a blank
};

// Which words need no merges where they are tokens.
enum class whole_words : uint8_t { none, line_ends, all };

// Whether the token for the begin of a text is put.
enum class begin_rule : uint8_t {
  if_asked,    // where the file says so
  by_default,  // where the file does not say no
  always,
};

// What a name in tokenizer.ggml.pre means.
struct pre_rule {
  std::vector<split_step> split;
  alphabet letters = alphabet::bytes;
  whole_words whole = whole_words::none;
  begin_rule bos = begin_rule::if_asked;
  std::string note;  // "" or why this rule was taken
};

[[nodiscard]] pre_rule pre_rule_for(std::string_view pre, std::string_view architecture);

[[nodiscard]] std::vector<std::string_view> pre_tokenizer_names();

class pre_tokenizer {
 public:
  // Interpreted, as where the platform has no compiler for expressions: the same pieces, slower.
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
