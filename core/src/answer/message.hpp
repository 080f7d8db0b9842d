#pragma once
// The parts of an answer as a message in OpenAI's form.

#include <span>
#include <string>

#include "answer/splitter.hpp"
#include "json/reading.hpp"

namespace bitnet::answer {

class message {
 public:
  void add(std::span<const part> more);
  // {"role": "assistant", "content", "reasoning_content"?, "tool_calls"?}: each call is {"id",
  // "type": "function", "function": {"name", "arguments"}}, the arguments a JSON text. Content is
  // null where there are calls and no text. What is malformed is content.
  [[nodiscard]] json::value written() const;

 private:
  std::string content_;
  std::string thinking_;
  json::value calls_ = json::value::array();
};

}  // namespace bitnet::answer
