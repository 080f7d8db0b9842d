#pragma once
// Collects the parts of an answer into a message in OpenAI's form.

#include <span>
#include <string>

#include "answer/splitter.hpp"
#include "json/reading.hpp"

namespace bitnet::answer {

class message {
 public:
  void add(std::span<const part> more);
  // {"role": "assistant", "content", "reasoning_content"?, "tool_calls"?}. Each call is {"id",
  // "type": "function", "function": {"name", "arguments"}} with arguments as a JSON text. Content
  // is null if there are calls and no text. Malformed calls count as content.
  [[nodiscard]] json::value written() const;

 private:
  std::string content_;
  std::string thinking_;
  json::value calls_ = json::value::array();
};

}  // namespace bitnet::answer
