#pragma once
// An answer in its parts, while it comes: what the model thinks, what it says, what it calls.
//
// Rule    thinking counts where an answer begins, after white space at most, or from the first byte
//         on where the prompt has opened it. Calls count in what is said, by the frames of the
//         dialect. What is not ended ends with the answer.
// Blanks  around thinking and calls are left out; else the text is as the model wrote it.
// Exact   the parts do not depend on how the text is cut into pieces.
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
    call_ends,    // index, text: the call as the model wrote it; empty but for a frame's last call
    malformed     // text as the model wrote it, which is no call; why, in `name`
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
    const dialect* form = nullptr;
    tools known = {};
    bool thinks = false;         // the prompt has opened the thinking
    std::string id_prefix = {};  // an id is this and the index
  };
  explicit splitter(options how) : how_(std::move(how)) {}

  [[nodiscard]] std::vector<part> take(std::string_view text);
  // What might still have become something else, and a call that is not ended.
  [[nodiscard]] std::vector<part> finish();
  // Whether the next text would be thinking.
  [[nodiscard]] bool thinks() const { return now_ == state::thinking; }

 private:
  enum class state : uint8_t { start, thinking, saying, calling };
  // Where a call ends, looked for in the text that has come; goes on where it stopped.
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
  std::string pending_;  // not known yet; of `calling`, the whole call behind its tag
  std::string held_;     // white space that belongs to what comes next, if anything does
  const frame* frame_ = nullptr;
  end_search search_;
  bool leading_ = true;       // nothing but white space and leading calls was said
  bool behind_part_ = false;  // thinking or a call came since text did, or before any
  bool said_ = false;
  uint32_t n_calls_ = 0;
  std::vector<part> out_;
};

}  // namespace bitnet::answer
