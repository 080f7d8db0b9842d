#pragma once
// The text of a chat's answer as blocks, one behind the other: thinking, text, calls of tools. A
// stream and a whole answer are made of the same events.

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
  std::string text = {};           // of a call: its arguments, JSON of an object
  std::string id = {}, name = {};  // of a call
};

struct block_event {
  enum class step : uint8_t { begin, piece, end };
  step what = step::begin;
  std::size_t index = 0;   // of the block
  std::string piece = {};  // of `piece`, not empty
};

class answer_blocks {
 public:
  // An error has the status 500: memory is short. `call_ids`: what ids of calls begin with. Without
  // prompt.chat all is text.
  [[nodiscard]] static parsed<answer_blocks> open(const prompt& of, const std::string& call_ids);

  // What the piece adds.
  [[nodiscard]] parsed<std::vector<block_event>> take(std::string_view piece);
  // Behind the last piece: ends what is open.
  [[nodiscard]] parsed<std::vector<block_event>> finish();

  // So far, with their text.
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

  answer_handle parts_;  // empty: all is text
  std::vector<block> blocks_;
  bool is_open_ = false;  // the last of them
};

}  // namespace bitnet::host::openai
