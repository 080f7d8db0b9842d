#pragma once
// A chat template of a model file: the subset of Jinja that such templates use. It is rendered as
// Python's jinja2 does in transformers' immutable sandbox.
//
// Marks   The text records which bytes came from the variables, see marked_text.hpp.
// Errors  BITNET_BAD_DATA with the line; BITNET_INVALID_ARGUMENT if the template rejects the
//         conversation (raise_exception); BITNET_UNSUPPORTED past the limits.
// Threads A parsed template never changes; any number of threads may render it.
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
