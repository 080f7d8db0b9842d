#pragma once
// Splits an answer, while it is generated, into thinking, content and calls.
//
// Rule    Thinking begins at the start of the answer (after white space), or at byte 0 if the
//         prompt opened it. Calls are found in the content, by the dialect's frames. The end of the
//         answer ends an open part.
// Blanks  White space around thinking and calls is dropped; other text is kept as generated.
// Exact   The parts do not depend on the pieces in which the text arrives.
// Source  docs/reference/chat-json.md

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answer/dialect.hpp"
#include "json/raw.hpp"

namespace bitnet::answer {

struct part {
  enum class kind : uint8_t {
    thinking_begins,
    thinking,  // text
    thinking_ends,
    content,      // text
    call_begins,  // index, id, name
    arguments,    // index, text: JSON of an object, whole
    call_ends,    // index, text: the raw call, only with a frame's last call, else empty
    malformed     // text: raw text that is no valid call; name: why
  };
  kind what;
  std::string text;
  uint32_t index = 0;
  std::string id;
  std::string name;
};

class splitter {
 public:
  struct options {
    const answer::dialect* dialect = nullptr;
    tools known = {};
    bool thinks = false;         // the prompt has opened the thinking
    std::string id_prefix = {};  // an id is this prefix and the index
  };
  explicit splitter(options how) : how_(std::move(how)) {}

  [[nodiscard]] std::vector<part> take(std::string_view text);
  // Ends the answer: returns text that was held back, and an unfinished call.
  [[nodiscard]] std::vector<part> finish();
  // Whether the next text continues the thinking.
  [[nodiscard]] bool thinks() const { return now_ == state::thinking; }

 private:
  enum class state : uint8_t { start, thinking, saying, calling };
  // Search for the end of a call; resumes where it stopped.
  struct end_search {
    std::size_t at = 0;
    json::bracket_finder brackets{false};
    std::optional<bool> is_json;
  };

  bool step(bool at_end);
  bool begin(bool at_end);
  bool think(bool at_end);
  bool say(bool at_end);
  bool say_leading(bool at_end, bool& is_call);
  bool call_on(bool at_end);
  void begin_call(const frame& of, std::size_t tag_bytes);
  void end_call(std::string_view body, std::size_t bytes);
  std::optional<std::size_t> find_end(bool at_end);
  void add_thinking(std::string_view text);
  void add_content(std::string_view text);
  void add(part::kind what, std::string text = "");

  options how_;
  state now_ = state::start;
  std::string pending_;  // not yet classified; in `calling`, all of the call after its tag
  std::string held_;     // white space that belongs to the next part; dropped at the end
  const frame* frame_ = nullptr;
  end_search search_;
  bool leading_ = true;       // so far only white space and leading calls
  bool behind_part_ = false;  // no content since the last thinking or call
  bool said_ = false;
  uint32_t n_calls_ = 0;
  std::vector<part> out_;
};

}  // namespace bitnet::answer
