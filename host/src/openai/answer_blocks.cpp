#include "openai/answer_blocks.hpp"

#include <algorithm>
#include <utility>

namespace bitnet::host::openai {
namespace {

std::string own(bitnet_str text) {
  return {text.data, text.size};
}

}  // namespace

parsed<answer_blocks> answer_blocks::open(const prompt& of, const std::string& call_ids) {
  answer_blocks out;
  if (!of.chat) return out;
  library_error err;
  bitnet_answer* opened = nullptr;
  const bitnet_status status = bitnet_chat_answer(of.chat.get(), call_ids.c_str(), &opened, &err);
  if (status != BITNET_OK) return std::unexpected(error_of(BITNET_OUT_OF_MEMORY, err.message));
  out.parts_.reset(opened);
  return out;
}

parsed<std::vector<block_event>> answer_blocks::take(std::string_view piece) {
  std::vector<block_event> out;
  if (piece.empty()) return out;
  if (!parts_) return add(block_kind::text, std::string(piece), out), out;
  library_error err;
  if (bitnet_answer_push(parts_.get(), borrowed(piece), &err) != BITNET_OK)
    return std::unexpected(error_of(BITNET_OUT_OF_MEMORY, err.message));
  read(out);
  return out;
}

parsed<std::vector<block_event>> answer_blocks::finish() {
  std::vector<block_event> out;
  library_error err;
  if (parts_ && bitnet_answer_finish(parts_.get(), &err) != BITNET_OK)
    return std::unexpected(error_of(BITNET_OUT_OF_MEMORY, err.message));
  if (parts_) read(out);
  end(out);
  return out;
}

bool answer_blocks::has_call() const {
  return std::ranges::any_of(blocks_, [](const block& b) { return b.kind == block_kind::call; });
}

bool answer_blocks::is_thinking() const {
  return parts_ && bitnet_answer_in_reasoning(parts_.get()) != 0;
}

void answer_blocks::read(std::vector<block_event>& to) {
  bitnet_answer_event e{};
  e.struct_size = sizeof e;
  library_error err;
  while (bitnet_answer_next(parts_.get(), &e, &err) == BITNET_OK) {
    if (e.kind == BITNET_ANSWER_REASONING)
      add(block_kind::thinking, own(e.text), to);
    else if (e.kind == BITNET_ANSWER_CONTENT || e.kind == BITNET_ANSWER_MALFORMED)
      add(block_kind::text, own(e.text), to);
    else if (e.kind == BITNET_ANSWER_CALL_BEGIN)
      begin({.kind = block_kind::call, .id = own(e.id), .name = own(e.name)}, to);
    else if (e.kind == BITNET_ANSWER_CALL_ARGUMENTS)
      add(block_kind::call, own(e.text), to);
    else if (e.kind == BITNET_ANSWER_CALL_END)
      end(to);
  }
}

void answer_blocks::add(block_kind kind, std::string piece, std::vector<block_event>& to) {
  if (piece.empty()) return;
  if (!is_open_ || blocks_.back().kind != kind) begin({.kind = kind}, to);
  blocks_.back().text += piece;
  to.push_back({block_event::step::piece, blocks_.size() - 1, std::move(piece)});
}

void answer_blocks::begin(block of, std::vector<block_event>& to) {
  end(to);
  blocks_.push_back(std::move(of));
  is_open_ = true;
  to.push_back({block_event::step::begin, blocks_.size() - 1});
}

void answer_blocks::end(std::vector<block_event>& to) {
  if (!std::exchange(is_open_, false)) return;
  to.push_back({block_event::step::end, blocks_.size() - 1});
}

}  // namespace bitnet::host::openai
