#pragma once
// Normalises text: NFC, lower case, and the plain words of BERT.
//
// Needs   valid UTF-8.
// Cost    linear in the text; ASCII text needs no look-up.
// Errors  std::bad_alloc, and nothing else.
// Source  Unicode Standard Annex 15; docs/reference/tokenizers.md.

#include <string>
#include <string_view>
#include <vector>

namespace bitnet::tokenizer {

[[nodiscard]] std::string composed(std::string_view text);
[[nodiscard]] std::string lowercased(std::string_view text);

struct bert_options {
  bool lowercase = true;
  bool strip_accents = true;
};

// Splits at white space, which is dropped; each punctuation mark and each Chinese character is a
// word.
[[nodiscard]] std::vector<std::string> bert_words(std::string_view text,
                                                  const bert_options& options);

}  // namespace bitnet::tokenizer
