#pragma once
// Splits the text of a chat's answer into consecutive blocks: thinking, text, tool calls. Streams
// and complete answers use the same events.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "library/handles.hpp"
#include "openai/prompt.hpp"

namespace bitnet::host::openai {

enum class block_kind : uint8_t { thinking, text, call };

struct block {
  block_kind kind = block_kind::text;
  std::string text = {};           // of a call: its arguments as a JSON object
  std::string id = {}, name = {};  // of a call
};

struct block_event {
  enum class step : uint8_t { begin, piece, end };
  step what = step::begin;
  std::size_t index = 0;   // index of the block
  std::string piece = {};  // for step::piece, not empty
};

class answer_blocks {
 public:
  // An error has the status 500: memory is short. `call_ids`: prefix of the ids of calls. Without
  // prompt.chat everything is one text block.
  [[nodiscard]] static parsed<answer_blocks> open(const prompt& of, const std::string& call_ids);

  // Returns the events that the piece causes.
  [[nodiscard]] parsed<std::vector<block_event>> take(std::string_view piece);
  // Call it after the last piece; it ends the open block.
  [[nodiscard]] parsed<std::vector<block_event>> finish();

  // The blocks so far, with their text.
  [[nodiscard]] const std::vector<block>& blocks() const { return blocks_; }
  [[nodiscard]] bool has_call() const;
  // Whether the next piece belongs to thinking.
  [[nodiscard]] bool is_thinking() const;

 private:
  answer_blocks() = default;
  void read(std::vector<block_event>& to);
  void add(block_kind kind, std::string piece, std::vector<block_event>& to);
  void begin(block of, std::vector<block_event>& to);
  void end(std::vector<block_event>& to);

  answer_handle parts_;  // empty: everything is text
  std::vector<block> blocks_;
  bool is_open_ = false;  // the last block has not ended
};

}  // namespace bitnet::host::openai
