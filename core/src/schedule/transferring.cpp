// Transfers of sequences to the host's memory and back. They hold blocks as others do, and are
// moved in pieces, so that running sequences wait for one piece at a time.

#include <fmt/core.h>

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "schedule/contents.hpp"

namespace bitnet::schedule {
namespace {

// How often a transfer begins anew because its device or its blocks were lost.
constexpr uint32_t most_begins = 4;

std::unexpected<failure> busy(const char* what) {
  return bitnet::fail(
      BITNET_BUSY,
      fmt::format("{}: requests that run have reserved the rest; try again when fewer run, "
                  "or open the scheduler with a larger kv_bytes",
                  what));
}

std::unexpected<failure> busy(kv::shortage what) {
  return busy(what == kv::shortage::states ? "no recurrent state is free"
                                           : "there is no room for the blocks of the sequence");
}

// The blocks of the next piece.
uint64_t piece_of(const transfer& t, uint64_t piece_bytes, uint64_t block_bytes) {
  return std::clamp<uint64_t>(piece_bytes / block_bytes, 1, t.n_blocks - t.n_moved);
}

}  // namespace

// --- from any thread ---

result<taken_sequence> scheduler::take_out(std::span<const int32_t> tokens) {
  const auto t = std::make_shared<transfer>();
  t->tokens.assign(tokens.begin(), tokens.end());
  auto done = t->done.get_future();
  if (auto ok = contents_->in_.add(t); !ok) return std::unexpected(std::move(ok.error()));
  if (auto n = done.get(); !n) return std::unexpected(std::move(n.error()));
  return std::move(t->made);
}

result<uint64_t> scheduler::put_in(const kv::saved_sequence& s) {
  const auto t = std::make_shared<transfer>();
  t->out = false;
  t->given = &s;
  t->tokens = s.tokens;
  auto done = t->done.get_future();
  if (auto ok = contents_->in_.add(t); !ok) return std::unexpected(std::move(ok.error()));
  return done.get();
}

// --- from the thread that ticks ---

bool scheduler::contents::move_piece() {
  if (transfers_.empty()) return false;
  const std::shared_ptr<transfer> t = transfers_.front();  // a lost device ends all transfers
  auto goes_on = runner_ == nullptr ? std::unexpected(lost_) : t->has_begun ? move(*t) : begin(*t);
  if (goes_on && *goes_on) return true;
  if (transfers_.empty() || transfers_.front() != t) return true;  // it was ended elsewhere
  if (!goes_on && is_loss(goes_on.error().status) && runner_ != nullptr) {
    lose_runner(goes_on.error());
    return true;
  }
  end_transfer(*t, goes_on ? result<uint64_t>(t->n_moved * kv::block_tokens)
                           : std::unexpected(std::move(goes_on.error())));
  transfers_.erase(transfers_.begin());
  return true;
}

// Returns whether there is more to do.
result<bool> scheduler::contents::begin(transfer& t) {
  if (++t.begun_again > most_begins)
    return bitnet::fail(
        BITNET_UNAVAILABLE,
        "the device or its blocks were lost each time that the sequence was moved: try "
        "again when the device works");
  t.n_moved = 0;
  return t.out ? begin_out(t) : begin_in(t);
}

result<bool> scheduler::contents::begin_out(transfer& t) {
  const auto known = memory_->hold_known(t.table, t.tokens);
  if (!known) return busy(known.error());
  t.has_begun = true;
  if (*known == 0)
    return bitnet::fail(
        BITNET_NOT_FOUND,
        fmt::format("no whole block of {} tokens is known of these {}: compute a request "
                    "with this prompt first; what others needed room for is forgotten",
                    kv::block_tokens, t.tokens.size()));
  const kv::saved_form& form = runner_->form();
  t.n_blocks = *known / kv::block_tokens;
  const uint64_t blocks_bytes = t.n_blocks * form.block_bytes;
  const uint64_t bytes = blocks_bytes + form.state_bytes;
  t.made.bytes.reset(new (std::nothrow) std::byte[bytes]);
  if (t.made.bytes == nullptr)
    return bitnet::fail(BITNET_OUT_OF_MEMORY,
                        fmt::format("there is no memory for the {} bytes of the sequence", bytes));
  kv::saved_sequence& it = t.made.it;
  it.form = form;
  it.tokens.assign(t.tokens.begin(), t.tokens.begin() + static_cast<std::ptrdiff_t>(*known));
  const std::span<std::byte> all(t.made.bytes.get(), bytes);
  it.blocks = all.first(blocks_bytes);
  it.state = all.subspan(blocks_bytes);
  if (!copy()) return true;  // copy() began the transfer again or ended it
  if (form.state_bytes == 0) return true;
  const uint32_t state = t.table.state();
  if (auto ok = runner_->write_out({&state, 1}, pool_content::states, all.subspan(blocks_bytes));
      !ok)
    return std::unexpected(std::move(ok.error()));
  return true;
}

result<bool> scheduler::contents::begin_in(transfer& t) {
  if (auto ok = kv::check_form(t.given->form, runner_->form()); !ok)
    return std::unexpected(std::move(ok.error()));
  const uint64_t all = t.given->tokens.size() / kv::block_tokens;
  t.n_blocks = std::min<uint64_t>(all, memory_->pool().available());
  // Without the state behind them, the blocks are useless.
  if (t.n_blocks == 0 || (t.n_blocks < all && !t.given->state.empty()))
    return busy(kv::shortage::blocks);
  t.tokens.assign(
      t.given->tokens.begin(),
      t.given->tokens.begin() + static_cast<std::ptrdiff_t>(t.n_blocks * kv::block_tokens));
  const auto known = memory_->begin(t.table, t.tokens);
  if (!known) return busy(known.error());
  t.has_begun = true;
  t.n_moved = *known / kv::block_tokens;
  return true;
}

result<bool> scheduler::contents::move(transfer& t) {
  if (t.n_moved == t.n_blocks) return t.out ? false : finish_in(t);
  const uint64_t n = piece_of(t, options_.piece_bytes, runner_->form().block_bytes);
  if (!t.out) return move_in(t, n);
  const uint64_t each = runner_->form().block_bytes;
  const std::span<std::byte> all(t.made.bytes.get(), t.n_blocks * each);
  if (auto ok = runner_->write_out(t.table.blocks().subspan(t.n_moved, n), pool_content::keys,
                                   all.subspan(t.n_moved * each, n * each));
      !ok)
    return std::unexpected(std::move(ok.error()));
  t.n_moved += n;
  return t.n_moved < t.n_blocks;
}

result<bool> scheduler::contents::move_in(transfer& t, uint64_t n) {
  if (!memory_->grow(t.table, n * kv::block_tokens))
    return bitnet::fail(
        BITNET_INTERNAL,
        fmt::format("a sequence that comes in lacks the {} blocks that it reserved", n));
  if (!copy()) return true;  // earlier copies may concern these blocks
  const uint64_t each = t.given->form.block_bytes;
  if (auto ok = runner_->read_in(t.table.blocks().subspan(t.n_moved, n), pool_content::keys,
                                 t.given->blocks.subspan(t.n_moved * each, n * each));
      !ok)
    return std::unexpected(std::move(ok.error()));
  t.n_moved += n;
  memory_->publish(t.table, std::span(t.tokens).first(t.n_moved * kv::block_tokens));
  return t.n_moved < t.n_blocks || !t.given->state.empty();
}

// Reads in the state, after all blocks.
result<bool> scheduler::contents::finish_in(transfer& t) {
  if (t.given->state.empty()) return false;
  if (!copy()) return true;
  const uint32_t state = t.table.state();
  if (auto ok = runner_->read_in({&state, 1}, pool_content::states, t.given->state); !ok)
    return std::unexpected(std::move(ok.error()));
  if (!memory_->leave_state(t.table)) return busy(kv::shortage::blocks);
  return false;
}

void scheduler::contents::end_transfer(transfer& t, result<uint64_t> how) {
  if (t.has_begun && memory_) {
    // If the pool had no other state, this one was kept behind these blocks: it goes back there.
    if (t.out) static_cast<void>(memory_->leave_state(t.table));
    memory_->leave(t.table);
  }
  room_changed_ = true;
  t.done.set_value(std::move(how));
}

void scheduler::contents::begin_transfer_again() {
  if (transfers_.empty() || !std::exchange(transfers_.front()->has_begun, false)) return;
  memory_->leave(transfers_.front()->table);
}

void scheduler::contents::end_transfers(const failure& why) {
  for (const auto& t : transfers_) end_transfer(*t, std::unexpected(why));
  transfers_.clear();
}

}  // namespace bitnet::schedule
