#include "answer/message.hpp"

namespace bitnet::answer {

void message::add(std::span<const part> more) {
  for (const part& one : more) {
    switch (one.what) {
      case part::kind::thinking:
        thinking_ += one.text;
        break;
      case part::kind::content:
      case part::kind::malformed:
        content_ += one.text;
        break;
      case part::kind::call_begins:
        calls_.push_back({{"id", one.id},
                          {"type", "function"},
                          {"function", {{"name", one.name}, {"arguments", ""}}}});
        break;
      case part::kind::arguments:
        calls_[one.index]["function"]["arguments"] = one.text;
        break;
      case part::kind::thinking_begins:
      case part::kind::thinking_ends:
      case part::kind::call_ends:
        break;
    }
  }
}

json::value message::written() const {
  json::value out = {{"role", "assistant"}, {"content", content_}};
  if (!calls_.empty() && content_.empty()) out["content"] = nullptr;
  if (!thinking_.empty()) out["reasoning_content"] = thinking_;
  if (!calls_.empty()) out["tool_calls"] = calls_;
  return out;
}

}  // namespace bitnet::answer
