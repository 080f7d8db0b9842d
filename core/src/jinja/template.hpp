#pragma once
// A chat template of a model file, in the part of Jinja that such templates use, rendered as
// Python's jinja2 renders it in the immutable sandbox of transformers.
//
// Marks   the text says which of its bytes came from the variables, as marked_text.hpp has it.
// Errors  BITNET_BAD_DATA with the line; BITNET_INVALID_ARGUMENT where the template itself refuses
//         the conversation (raise_exception); BITNET_UNSUPPORTED past the limits.
// Threads a parsed template is never changed: any number may render it.
// Source  jinja.palletsprojects.com 3.1; docs/adr/0030-own-jinja.md for what is left out.

#include <ctime>
#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "jinja/rendering.hpp"

namespace bitnet::jinja {

class chat_template {
 public:
  static result<chat_template> parse(std::string_view source);
  [[nodiscard]] result<marked_text> render(const dict& variables, std::time_t now,
                                           const limits& bounds = {}) const;

 private:
  struct contents;
  std::shared_ptr<const contents> contents_;
};

}  // namespace bitnet::jinja
