#include "tokenizer/wordpiece.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "tokenizer/blanks.hpp"
#include "tokenizer/utf8.hpp"

namespace bitnet::tokenizer {
namespace {

constexpr size_t longest_word = 100;  // characters; BERT's own bound

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

// The longest token at `rest` with more than `least` bytes.
std::optional<token> longest_token(const vocabulary& v, std::string_view rest, size_t least,
                                   size_t& length) {
  for (length = std::min(rest.size(), v.longest_text); length > least; --length) {
    if (length < rest.size() && !begins_character(rest[length])) continue;
    const auto id = v.find(rest.substr(0, length));
    if (id && v.type(*id) == token_type::normal) return id;
  }
  return std::nullopt;
}

// Returns false if no tokens make up the word.
bool append_word(const vocabulary& v, std::string_view marked, std::vector<token>& out) {
  size_t least = blank.size();  // the mark alone begins no word
  for (size_t at = 0; at < marked.size(); least = 0) {
    // Within a word U+2581 is a character of the text; tokens that begin with it only begin words.
    if (at > 0 && marked.substr(at).starts_with(blank)) return false;
    size_t length = 0;
    const auto id = longest_token(v, marked.substr(at), least, length);
    if (!id) return false;
    out.push_back(*id);
    at += length;
  }
  return true;
}

}  // namespace

result<void> encode_wordpiece(const vocabulary& v, const bert_options& options,
                              std::string_view text, std::vector<token>& out) {
  for (const std::string& word : bert_words(text, options)) {
    const size_t before = out.size();
    const auto characters = static_cast<size_t>(std::ranges::count_if(word, begins_character));
    if (characters <= longest_word && append_word(v, std::string(blank) + word, out)) continue;
    out.resize(before);
    if (!v.unknown) {
      return fail(BITNET_BAD_DATA,
                  fmt::format("the vocabulary has neither tokens for the word {} nor an unknown "
                              "token; convert the model again with its whole tokenizer",
                              in_quotes(word)));
    }
    out.push_back(*v.unknown);
  }
  return {};
}

std::string wordpiece_text_to_bytes(std::string_view text) {
  if (!text.starts_with(blank)) return std::string(text);
  return fmt::format(" {}", text.substr(blank.size()));
}

}  // namespace bitnet::tokenizer
