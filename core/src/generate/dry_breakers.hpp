#pragma once
// Texts that end a repetition (DRY), as tokens of a vocabulary, as llama.cpp finds them: a token
// that contains such a text is a breaker; so is a token that ends with the text's beginning, if the
// tokens of the rest follow.
//
// Bounds  32 texts of 1 to 40 bytes; of the rest of a text the first 20 tokens count. A text whose
//         UTF-8 character is cut by the end of a token is not found there.
// Cost    O(bytes of the vocabulary x texts): of 128k tokens, 16 ms for 4 texts and 0.3 s for the
//         most; a list that was asked for lately is found again.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "sampling/repetition.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::generate {

inline constexpr std::size_t most_breakers = 32;

// The default of llama.cpp.
inline constexpr const char* default_breakers[] = {"\n", ":", "\"", "*"};

// BITNET_INVALID_ARGUMENT past the bounds.
result<std::shared_ptr<const sampling::breakers>> find_breakers(
    const tokenizer::tokenizer& tokens, const std::vector<std::string>& texts);

// The last few lists of one vocabulary. Threads: any.
class known_breakers {
 public:
  result<std::shared_ptr<const sampling::breakers>> find(const tokenizer::tokenizer& tokens,
                                                         const std::vector<std::string>& texts);

 private:
  static constexpr std::size_t most = 8;
  std::mutex mutex_;  // guards the members below
  // The list that was used last is the last.
  std::vector<std::pair<std::vector<std::string>, std::shared_ptr<const sampling::breakers>>> all_;
};

}  // namespace bitnet::generate
