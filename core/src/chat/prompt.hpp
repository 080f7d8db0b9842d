#pragma once
// A conversation as the prompt of a model, with what is needed to read the answer.

#include <string>
#include <vector>

#include "chat/rendering.hpp"

namespace bitnet::chat {

struct prompt_options {
  std::string_view form = {};     // never "auto"
  std::string_view dialect = {};  // of answer::dialects(); "": that of the form
  bool parse_special = false;
  bool answer = true;
  bool continues = false;
  bool one_call = false;  // a grammar allows one call only
  uint64_t context = 0;   // as fit() has it
};

struct chat_prompt {
  std::vector<tokenizer::token> ids;
  std::string text;  // for people to read
  std::size_t left_out = 0;
  const answer::dialect* dialect = nullptr;
  bool thinks = false;  // the answer begins within thinking
  // GBNF that binds the answer to a call, where the request demands one, behind thinking if the
  // model may think; "": any text.
  std::string grammar;
  // Tools with a schema that the grammar does not follow, a line for each, as
  // answer::bound_calls has them.
  std::string unbound;
};

// BITNET_UNSUPPORTED where a call is demanded and the dialect has none. A demanded call of a tool
// with strict: true has the errors of answer::bind_arguments().
result<chat_prompt> make_prompt(const source& from, const tool_support& knows,
                                const conversation& talk, const prompt_options& how);

}  // namespace bitnet::chat
