#pragma once
// The blocks and states of a runner's memory that sequences hold, from admission to end.
//
// Copies  that a call asks for are noted in copies(); they are to be run before the next step.
// Threads one at a time.

#include <cstdint>
#include <expected>
#include <span>

#include "kv/block_pool.hpp"
#include "schedule/sequence.hpp"
#include "schedule/step.hpp"

namespace bitnet::schedule {

class kv_memory {
 public:
  kv_memory(const step_limits& most, const kv::hash_secret& secret);

  [[nodiscard]] const step_limits& most() const { return most_; }
  // Whether the sequence would have room if it were alone.
  [[nodiscard]] bool could_hold(const sequence& s) const;
  // At most how many blocks the sequence lacks now; 0: none, or only a state.
  [[nodiscard]] uint32_t lacking(const sequence& s) const;

  // Reserves the blocks that `s` needs until its end, and counts the known prefix as computed.
  std::expected<void, kv::shortage> begin(sequence& s);
  // `child` continues from all tokens that `parent` has computed, which are all of the child's
  // tokens but its last.
  std::expected<void, kv::shortage> fork(const sequence& parent, sequence& child);
  // Gives back all blocks. What was computed stays known as long as there is room for it.
  void leave(sequence& s);

  // The most tokens of the sequence's next chunk, so that a state can be kept behind it; 0: any.
  [[nodiscard]] uint64_t break_at(const sequence& s) const;
  // Takes blocks for the sequence's next `n` tokens, and returns blocks to which no token attends
  // any more. They are reserved, so false means a defect of the scheduler.
  bool grow(sequence& s, uint64_t n);
  // Notes that the sequence's next `n` tokens are computed.
  void note_computed(sequence& s, uint64_t n);
  // The most draft tokens that the sequence has reserved blocks for.
  [[nodiscard]] uint64_t room_ahead(const sequence& s) const;
  // For a model with states: keep_state() keeps the state before a step with a draft, and returns
  // false if there is no room for one. After the step, keep_step() or take_back_step() is called.
  [[nodiscard]] bool has_states() const { return most_.n_states != 0; }
  bool keep_state(sequence& s) { return !has_states() || pool_.keep_state(s.table, copies_); }
  void keep_step(sequence& s) { pool_.drop_kept(s.table); }
  void take_back_step(sequence& s);

  // The rest is for sequences that are saved to a file or loaded from one; they have a table and
  // take no part in steps. hold_known() takes the known blocks of `tokens`, and returns how many
  // tokens they have.
  std::expected<uint64_t, kv::shortage> hold_known(kv::table& t, std::span<const int32_t> tokens);
  // As hold_known(), and reserves room for the rest; `tokens` are whole blocks.
  std::expected<uint64_t, kv::shortage> begin(kv::table& t, std::span<const int32_t> tokens);
  bool grow(kv::table& t, uint64_t n) { return pool_.extend(t, n, copies_); }
  void publish(kv::table& t, std::span<const int32_t> tokens) { pool_.publish(t, tokens); }
  bool leave_state(kv::table& t) { return pool_.leave_checkpoint(t); }
  void leave(kv::table& t) { pool_.release(t); }

  [[nodiscard]] kv::copy_list& copies() { return copies_; }
  // Call it after copies that failed: it drops all known prefixes. Sequences whose blocks were to
  // be filled by these copies must leave the pool.
  void forget() { pool_.forget(); }
  [[nodiscard]] const kv::block_pool& pool() const { return pool_; }

 private:
  [[nodiscard]] uint32_t most_blocks(const sequence& s) const;

  step_limits most_;
  kv::block_pool pool_;
  kv::copy_list copies_;
};

}  // namespace bitnet::schedule
