#include "schedule/kv_memory.hpp"

#include <algorithm>
#include <vector>

#include "schedule/admission.hpp"

namespace bitnet::schedule {
namespace {

kv::shape shape_of(const step_limits& most) {
  return {.n_blocks = most.n_blocks, .n_states = most.n_states, .windows = most.window != 0};
}

// The end of the last whole block before the last token, which is always computed.
uint64_t last_border(const sequence& s) {
  return (s.tokens.size() - 1) / kv::block_tokens * kv::block_tokens;
}

// If the blocks of a prefix are known but no state is, other sequences share this prefix. On the
// way through it states are kept at each multiple of this, so that the next sequence finds some.
constexpr uint64_t shared_border = 4 * kv::block_tokens;

bool is_shared(const sequence& s) {
  return s.used.missed == kv::miss::state_missing;
}

// The position where the next state is to be kept; 0: nowhere.
uint64_t next_border(const sequence& s) {
  const uint64_t last = last_border(s);
  if (last <= s.computed) return 0;
  return is_shared(s) ? std::min(last, (s.computed / shared_border + 1) * shared_border) : last;
}

}  // namespace

kv_memory::kv_memory(const step_limits& most, const kv::hash_secret& secret)
    : most_(most), pool_(shape_of(most), secret) {}

uint32_t kv_memory::most_blocks(const sequence& s) const {
  const uint64_t tokens = most_tokens_of(s.of->n_prompt, s.of->max_tokens, most_);
  return most_blocks_of(std::max<uint64_t>(tokens, s.tokens.size()), most_);
}

bool kv_memory::could_hold(const sequence& s) const {
  return most_blocks(s) <= most_.n_blocks;
}

uint32_t kv_memory::lacking(const sequence& s) const {
  const uint32_t needs = most_blocks(s);
  return needs - std::min(needs, pool_.available());
}

std::expected<void, kv::shortage> kv_memory::begin(sequence& s) {
  const auto known =
      s.reads_prefix() ? std::span<const int32_t>(s.tokens) : std::span<const int32_t>();
  const auto found = pool_.match(s.table, known, most_blocks(s), copies_);
  if (!found) return std::unexpected(found.error());
  s.computed = found->tokens;
  if (s.ever_computed == 0) {
    s.used.cached_tokens = found->tokens;
    s.used.missed = found->why;
    s.ever_computed = found->tokens;
  }
  return {};
}

std::expected<void, kv::shortage> kv_memory::fork(const sequence& parent, sequence& child) {
  if (auto ok = pool_.fork(parent.table, child.table, most_blocks(child), copies_); !ok) return ok;
  child.computed = parent.computed;
  return {};
}

void kv_memory::leave(sequence& s) {
  pool_.release(s.table);
  s.computed = 0;
  s.replays = false;
}

// A draft ends where the last token is sampled, which needs no block.
uint64_t kv_memory::room_ahead(const sequence& s) const {
  const uint64_t end =
      std::min<uint64_t>(most_tokens_of(s.of->n_prompt, s.of->max_tokens, most_), most_.n_context);
  const uint64_t room = end - std::min<uint64_t>(end, s.tokens.size());
  const uint64_t of_chunk = most_chunk_of(most_);
  return std::min(room, of_chunk - std::min(of_chunk, s.left()));
}

void kv_memory::take_back_step(sequence& s) {
  pool_.go_back(s.table);
  s.replays = true;
}

uint64_t kv_memory::break_at(const sequence& s) const {
  if (most_.n_states == 0 || !s.reads_prefix()) return 0;
  const uint64_t border = next_border(s);
  return border == 0 ? 0 : border - s.computed;
}

bool kv_memory::grow(sequence& s, uint64_t n) {
  if (most_.window != 0 && s.computed >= most_.window)
    pool_.drop_unseen(s.table, s.computed + 1 - most_.window, most_.window_keep);
  const uint64_t end = s.computed + n;
  if (end <= s.table.tokens()) return true;  // left from a step that failed
  return pool_.extend(s.table, end - s.table.tokens(), copies_);
}

void kv_memory::note_computed(sequence& s, uint64_t n) {
  s.computed += n;
  s.replays = false;
  s.ever_computed = std::max(s.ever_computed, s.computed);
  if (!s.reads_prefix()) return;  // nor does any other sequence of its kind
  pool_.publish(s.table, std::span(s.tokens).first(s.computed));
  if (most_.n_states == 0 || s.computed % kv::block_tokens != 0) return;
  // More states within a prompt would displace those of others.
  const bool shared = is_shared(s) && s.computed % shared_border == 0;
  if (shared || s.computed >= last_border(s)) static_cast<void>(pool_.checkpoint(s.table, copies_));
}

std::expected<uint64_t, kv::shortage> kv_memory::hold_known(kv::table& t,
                                                            std::span<const int32_t> tokens) {
  // match() never returns the prompt's last token, so append a dummy token: then all of `tokens`
  // can match.
  std::vector<int32_t> prompt(tokens.begin(), tokens.end());
  prompt.push_back(0);
  const auto found = pool_.match(t, prompt, 0, copies_);
  if (!found) return std::unexpected(found.error());
  return found->tokens;
}

std::expected<uint64_t, kv::shortage> kv_memory::begin(kv::table& t,
                                                       std::span<const int32_t> tokens) {
  const auto found = pool_.match(t, tokens, kv::blocks_for(tokens.size()), copies_);
  if (!found) return std::unexpected(found.error());
  return found->tokens;
}

}  // namespace bitnet::schedule
