#pragma once
// Which KV blocks and recurrent states of a device hold what, for many sequences: reference-counted
// blocks, a tree of known prefixes, copy on write, reservations, eviction. Numbers only: the runner
// has the memory.
//
// The budget is what `shape` says. A block is used (some table holds it), cached (none does, but
// the tree knows its tokens, so that a later sequence can go on from it) or free. Blocks that a
// table has reserved are among the cached and free ones; used + cached + free == n_blocks, and
// reserved <= cached + free, at any time.
//
// The course of a sequence:
//   match    takes the known prefix of its prompt and reserves the rest; only match may lack room
//   extend   before each step: blocks for its tokens
//   publish  after each step: the blocks that became full are known
//   release  at its end, or when it is preempted: its full blocks stay cached
//
// Each call appends the copies that it needs to `copies`. They must run before the next step, in
// their order: a block that one copy reads may have been given to another table since, and be
// written by a later copy. If running them fails, call forget() and release the tables that they
// were for.
//
// Threads  one at a time.
// Cost     of each call O(1) for each block that it names; nothing is allocated but by tables that
//          grow beyond what they reserved (those of windows).

#include <array>
#include <cstdint>
#include <expected>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "kv/blocks.hpp"
#include "kv/prefix_tree.hpp"

namespace bitnet::kv {

// The size of a pool.
struct shape {
  uint32_t n_blocks = 0;  // < 2^30
  uint32_t n_states = 0;  // 0: the model has none, else each table has one
  // The sequences have windows, and so give back blocks that others still hold. For each further
  // reference to a shared block another one stays reserved: sharing saves work, but no memory.
  bool windows = false;
  uint32_t tokens_per_block = block_tokens;  // > 0; other values are for tests
};

// Whole blocks to copy, from[i] to to[i]; state i is block n_blocks + i.
struct copy_list {
  std::vector<uint32_t> from, to;

  void clear() { from.clear(), to.clear(); }
  [[nodiscard]] bool empty() const { return from.empty(); }
  // Returns the end of the copies from `begin` on that can be one kv_copy. Its copies have no
  // order, so no block in it may be both written and read, or written twice.
  [[nodiscard]] std::size_t independent_until(std::size_t begin) const;
};

// The blocks and the state of a sequence. A pool fills it, and it must be released to that pool.
class table {
 public:
  table() = default;
  table(table&& other) noexcept { *this = std::move(other); }
  table& operator=(table&& other) noexcept;  // *this is to hold nothing
  table(const table&) = delete;
  table& operator=(const table&) = delete;
  ~table() = default;

  // In order of position; no_block where nothing is seen any more. Valid until the table's next
  // call.
  [[nodiscard]] std::span<const uint32_t> blocks() const { return blocks_; }
  [[nodiscard]] uint64_t tokens() const { return tokens_; }          // that have a place in blocks_
  [[nodiscard]] uint32_t state() const { return state_; }            // no_block: none
  [[nodiscard]] uint32_t held() const { return held_; }              // blocks that are not no_block
  [[nodiscard]] uint32_t kept_state() const { return kept_state_; }  // by keep_state(), or no_block
  [[nodiscard]] uint32_t reserved() const { return reserved_; }

 private:
  friend class block_pool;
  std::vector<uint32_t> blocks_;
  uint64_t tokens_ = 0;
  uint32_t state_ = no_block, kept_state_ = no_block;
  uint32_t held_ = 0;
  uint32_t reserved_ = 0;   // blocks that it can still take
  uint32_t at_most_ = 0;    // held_ + reserved_ do not grow beyond it
  uint32_t published_ = 0;  // blocks from the first on that the tree knew, or learned by publish()
  uint32_t dropped_from_ = 0, dropped_to_ = 0;  // blocks [from, to) were given back as unseen
  uint64_t epoch_ = 0;  // the pool's when this began; after a forget() nothing more is published
};

// Why less than a whole prompt was found. "There" is the first block that was not found.
enum class miss : uint8_t {
  none,           // all blocks that the prompt fills, but for its last token, were found
  nothing_known,  // no block is known there, whatever its tokens
  differs,        // blocks with other tokens are known there
  evicted,        // the block was known, and was evicted
  state_missing,  // more blocks are known, but the last checkpoint of the states is before them
};
inline constexpr std::size_t n_misses = 5;

enum class shortage : uint8_t { blocks, states };

class block_pool {
 public:
  // `hash`: other ones than the default are for tests.
  block_pool(const shape& s, const hash_secret& secret, hash_function hash = chained_hash);

  struct found {
    uint64_t tokens = 0;  // from position 0; whole blocks, never all of the prompt
    miss why = miss::none;
  };
  // Begins the empty table `t` for a sequence with the prompt `tokens`, that holds `blocks_at_most`
  // at a time, at least as many as it finds: takes references to the longest known run of blocks
  // and reserves the rest. A shortage leaves everything as it was, and is not counted as a query.
  std::expected<found, shortage> match(table& t, std::span<const int32_t> tokens,
                                       uint32_t blocks_at_most, copy_list& copies);
  // Raises what `t`, which match or fork began, can hold at a time to `blocks_at_most`; false, with
  // nothing changed, when there is no room.
  bool reserve(table& t, uint32_t blocks_at_most);

  // Gives `t` blocks for `n_tokens` more, and makes those writable. Takes them from the reservation
  // of `t`, and cannot fail within it. Beyond it, returns false and changes nothing.
  bool extend(table& t, uint64_t n_tokens, copy_list& copies);

  // Makes blocks that became full since the last call known. `tokens`: all of the sequence whose
  // keys are computed, at most t.tokens(). If the tree already knows a block of the same tokens,
  // the table holds that one from now on, and gives its own back.
  void publish(table& t, std::span<const int32_t> tokens);

  // Makes the empty `child` a second sequence with all that `parent` has. Its whole blocks are
  // shared, and a partial one until either writes to it.
  std::expected<void, shortage> fork(const table& parent, table& child, uint32_t blocks_at_most,
                                     copy_list& copies);

  // Takes back all but the first `n_tokens` and returns how many are left, t.tokens() from now on.
  // Fewer than n_tokens are left, if that is
  //   within a block that the tree knows, or that another table holds with no block reserved for a
  //   copy (fork reserves one): up to the begin of this block
  //   within blocks that drop_unseen gave back: up to the begin of these
  //   with states, not at a checkpoint: up to the last checkpoint before
  // Without windows, blocks that another table holds as well leave the reservation; reserve() takes
  // them into it again.
  uint64_t truncate(table& t, uint64_t n_tokens, copy_list& copies);

  // Frees the blocks whose positions all lie in [keep, first_seen), which no token attends to any
  // more. If it frees one, later blocks of the sequence are not published.
  void drop_unseen(table& t, uint64_t first_seen, uint64_t keep);

  // Keeps a copy of the state beside the last block, for match. Returns true without a copy if the
  // block has one. Returns false, with nothing changed, unless all tokens of `t` are published and
  // end at a block's border, and a state is free or another block's checkpoint can be dropped for
  // it.
  bool checkpoint(table& t, copy_list& copies);
  // Keeps a copy of the state of `t` before a step that may be taken back. False, with nothing
  // changed, where no state is free and no checkpoint can go.
  bool keep_state(table& t, copy_list& copies);
  // Makes the copy of keep_state() the state of `t`, which has no copy then.
  void go_back(table& t);
  // Frees that copy.
  void drop_kept(table& t);
  // As checkpoint(), for a table that is released next: its own state becomes the checkpoint. So
  // nothing is copied, and no free state is needed.
  bool leave_checkpoint(table& t);

  // Ends `t`, and leaves it empty. `t` may be empty before.
  void release(table& t);

  // The contents of all blocks are lost: nothing is known any more, and what tables have now is
  // never published.
  void forget();

  struct statistics {
    uint32_t blocks_used = 0, blocks_cached = 0, blocks_free = 0, blocks_reserved = 0;
    uint32_t states_used = 0, states_kept = 0, states_free = 0;  // kept: checkpoints
    uint64_t queried_tokens = 0, found_tokens = 0;               // by match
    uint64_t evicted_blocks = 0, evicted_states = 0;
    std::array<uint64_t, n_misses> misses{};  // matches by `miss`
  };
  [[nodiscard]] statistics stats() const;

  [[nodiscard]] const shape& has() const { return shape_; }
  // Blocks that are not reserved: what match and reserve can still give.
  [[nodiscard]] uint32_t available() const;
  [[nodiscard]] uint32_t blocks_of(uint64_t tokens) const;

 private:
  struct run {            // known blocks, listed in run_
    uint32_t cached = 0;  // how many of them are cached
    miss why = miss::none;
  };
  run find_run(std::span<const int32_t> tokens);
  void begin(table& t, uint32_t blocks_at_most);
  void begin_state(table& t, uint32_t from, copy_list& copies);

  uint32_t take();
  uint32_t take_reserved(table& t);
  void hold(uint32_t block);
  bool let_go(uint32_t block);
  void give_up(table& t, uint32_t block);
  bool hold_known(uint32_t own, uint32_t known);
  void make_writable(table& t, copy_list& copies);
  void cut(uint32_t block);
  void remove(uint32_t leaf);

  [[nodiscard]] bool has_states() const { return shape_.n_states != 0; }
  [[nodiscard]] bool lacks_state() const;
  uint32_t take_state();
  void drop_checkpoint(uint32_t block);
  [[nodiscard]] uint64_t last_checkpoint(const table& t, uint64_t n_tokens) const;
  [[nodiscard]] uint64_t whole_until(const table& t, uint64_t n_tokens) const;
  [[nodiscard]] bool can_keep_state(const table& t) const;
  void copy_state(uint32_t from, uint32_t to, copy_list& copies) const;

  struct block {
    uint32_t references = 0;
    // How many blocks are reserved for copies of this one or, with windows, for tables that give it
    // up and take another. Fewer than references.
    uint32_t backing = 0;
    uint32_t checkpoint = no_block;  // the state kept beside it
  };
  const shape shape_;
  prefix_tree tree_;
  std::vector<block> blocks_;
  index_lists cached_;       // in order of their last use; children before their parents
  index_lists checkpoints_;  // blocks that have one, in order of its last use
  std::vector<uint32_t> free_, free_states_;
  std::vector<uint32_t> run_;  // of find_run
  uint64_t epoch_ = 1;
  statistics stats_;  // all but blocks_used, blocks_free, states_used and states_free are kept
};

}  // namespace bitnet::kv
