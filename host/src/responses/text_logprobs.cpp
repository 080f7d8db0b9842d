#include "responses/text_logprobs.hpp"

#include <algorithm>
#include <utility>

namespace bitnet::host::responses {
namespace {

using nlohmann::ordered_json;
using openai::block_event;
using openai::block_kind;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

ordered_json list_of(const std::vector<openai::choice>& from, std::size_t index) {
  if (index >= from.size()) return ordered_json::array();
  return openai::logprobs_json(openai::endpoint::chat, from[index])["content"];
}

}  // namespace

void text_logprobs::take(std::span<const block_event> events, std::span<const openai::block> blocks,
                         bool thinks) {
  events_.assign(events.size(), {});
  blocks_.resize(blocks.size());
  bool has_text = false;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const block_event& e = events[i];
    if (e.what == block_event::step::end) continue;
    if (blocks[e.index].kind != block_kind::text) {
      waiting_.clear();
    } else if (e.what == block_event::step::piece) {
      drop_blanks(e);
      events_[i].logprobs = std::exchange(waiting_, {});
      auto& all = blocks_[e.index].logprobs;
      all.insert(all.end(), events_[i].logprobs.begin(), events_[i].logprobs.end());
      has_text = true;
    }
  }
  if (thinks || (thought_ && !has_text)) waiting_.clear();
  thought_ = thinks;
}

// A text begins after the blanks that a model writes before it.
void text_logprobs::drop_blanks(const block_event& of) {
  if (!blocks_[of.index].logprobs.empty() || is_blank(of.piece.front())) return;
  while (waiting_.size() > 1 && std::ranges::all_of(waiting_.front().piece, is_blank))
    waiting_.erase(waiting_.begin());
}

ordered_json text_logprobs::of_event(std::size_t i) const {
  return list_of(events_, i);
}

ordered_json text_logprobs::of_block(std::size_t index) const {
  return list_of(blocks_, index);
}

}  // namespace bitnet::host::responses
