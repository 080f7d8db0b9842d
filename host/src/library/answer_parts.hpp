#pragma once
// An answer in its parts: what the model thinks, what it says, and the tools that it calls.
//
// Rule    <think> ... </think> counts where an answer begins, after white space at most;
//         <tool_call> ... </tool_call> anywhere else. What is not ended ends with the answer.
// Source  docs/reference/models.md#answers

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host {

inline constexpr std::string_view thinking_begins = "<think>";
inline constexpr std::string_view thinking_ends = "</think>";
inline constexpr std::string_view call_begins = "<tool_call>";
inline constexpr std::string_view call_ends = "</tool_call>";

enum class part : uint8_t { content, reasoning, tool_call };

// Text of a part, or one of its tags, which is not in the text.
struct answer_piece {
  enum class kind : uint8_t { begins, text, ends };
  part of;
  kind what;
  std::string text;
};

// Takes an answer as it comes; a tag may come in several texts. All pieces together are the answer,
// but for white space before a <think>.
class answer_splitter {
 public:
  [[nodiscard]] std::vector<answer_piece> take(std::string_view text);
  [[nodiscard]] std::vector<answer_piece> finish();  // what might still have become a tag

 private:
  std::vector<answer_piece> split(bool at_end);
  bool split_once(std::string_view& rest, bool at_end, std::vector<answer_piece>& out);
  bool begin(std::string_view& rest, bool at_end, std::vector<answer_piece>& out);

  std::string pending_;
  part now_ = part::content;
  bool at_start_ = true;
};

struct answer {
  std::string reasoning;  // each without white space at its ends
  std::string content;
  std::vector<std::string> calls;  // what stands between the tags
};
[[nodiscard]] answer split_answer(std::string_view text);

// {"role": "assistant", "content"}, with "reasoning_content" if there is some, and "tool_calls", a
// list of {"name", "arguments"}, or of {"text"} where that is neither such JSON nor <function=...>.
[[nodiscard]] nlohmann::json message_json(const answer& said);

}  // namespace bitnet::host
