#pragma once
// Makes the prompt of a conversation, with what is needed to parse the answer.

#include <string>
#include <vector>

#include "chat/rendering.hpp"

namespace bitnet::chat {

struct prompt_options {
  std::string_view form = {};     // never "auto"
  std::string_view dialect = {};  // of answer::dialects(); "": the form's
  bool parse_special = false;
  bool answer = true;
  bool continues = false;
  bool one_call = false;  // a grammar allows one call only
  uint64_t context = 0;   // see fit()
};

struct chat_prompt {
  std::vector<tokenizer::token> ids;
  std::string text;  // readable form of the tokens
  std::size_t left_out = 0;
  const answer::dialect* dialect = nullptr;
  bool thinks = false;  // the prompt opens the thinking
  // GBNF for the answer if the request demands a call; thinking may come first if the model thinks.
  // "": any text.
  std::string grammar;
  // One line per tool whose schema the grammar does not bind, see answer::bound_calls.
  std::string unbound;
};

// BITNET_UNSUPPORTED if a call is demanded and the dialect has none. For a demanded tool with
// strict: true the errors of answer::bind_arguments().
result<chat_prompt> make_prompt(const source& from, const tool_support& knows,
                                const conversation& talk, const prompt_options& how);

}  // namespace bitnet::chat
