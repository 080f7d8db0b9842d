#pragma once
// A vocabulary for tests of chats, with a template.

#include <stdexcept>
#include <string>
#include <vector>

#include "tokenizer/byte_table.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::chat {

// A token for each byte, and one merge.
inline tokenizer::vocabulary_data byte_vocabulary(std::string jinja) {
  tokenizer::vocabulary_data v;
  v.model = "gpt2";
  v.pre = "gpt-2";
  for (int b = 0; b < 256; ++b)
    v.tokens.emplace_back(tokenizer::byte_to_text(static_cast<unsigned char>(b)));
  v.tokens.emplace_back("ab");
  v.merges = {"a b"};
  v.types.assign(v.tokens.size(), 1);
  v.chat_template = std::move(jinja);
  return v;
}

// The same with <s>, </s> and the given control tokens.
inline tokenizer::vocabulary_data vocabulary_of(const std::vector<std::string>& control,
                                                std::string jinja) {
  tokenizer::vocabulary_data v = byte_vocabulary(std::move(jinja));
  v.bos = static_cast<int64_t>(v.tokens.size());
  v.eos = *v.bos + 1;
  for (const char* text : {"<s>", "</s>"}) v.tokens.emplace_back(text);
  v.tokens.insert(v.tokens.end(), control.begin(), control.end());
  v.types.resize(v.tokens.size(), 3);
  return v;
}

inline tokenizer::tokenizer vocabulary(const std::vector<std::string>& control, std::string jinja) {
  auto made = tokenizer::tokenizer::make(vocabulary_of(control, std::move(jinja)));
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

}  // namespace bitnet::chat
