#include "runner/session_runner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <mutex>

#include "base/wording.hpp"
#include "plugin/loading/kept_state.hpp"

namespace bitnet::runner {

result<std::unique_ptr<session_runner>> session_runner::open(std::shared_ptr<engine::engine> e,
                                                             const engine::session_options& options,
                                                             uint64_t cancel_token) {
  std::unique_ptr<session_runner> s(new session_runner(std::move(e)));
  {
    const std::lock_guard device_lock(s->engine_->device_mutex());
    auto ready = s->measure(options);
    if (ready) ready = s->take_store(options);
    if (!ready) return std::unexpected(std::move(ready.error()));
  }
  auto runner =
      model_runner::open(s->engine_, options, s->limits_, 1, s->store_->pools(), cancel_token);
  if (!runner) return std::unexpected(std::move(runner.error()));
  s->runner_ = std::move(*runner);
  return s;
}

session_runner::~session_runner() {
  // Memory to which a step that never ended may still write is not reused.
  if (runner_ && runner_->is_hung()) {
    kv_.table.clear();
    kv_.spare = kv::kv_blocks{0};
    kv_.state = kv_.kept_state = kv::no_block;
  }
  runner_.reset();
  const std::lock_guard device_lock(engine_->device_mutex());
  const plugin::kept_thread kept(*engine_->choice().backend->complaints());
  if (store_) store_->leave(kv_);
  store_.reset();
}

uint64_t session_runner::kv_bytes() const {
  const bitnet_kv_config& all = store_->config();
  return limits_.block_bytes * all.n_blocks + uint64_t{all.n_states} * engine::state_bytes(all);
}

// Finds the limits that this engine gives to a session with these options.
result<void> session_runner::measure(const engine::session_options& options) {
  const model::hyperparameters& shape = engine_->model().shape();
  uint32_t attention_flags = UINT32_MAX;
  for (const auto& p : engine_->parts()) {
    attention_flags &= p->choice().device.attention_flags;
    if (auto ok = check_kv_types(p->choice(), shape, options); !ok)
      return pass_on(std::move(ok), fmt::format("backend {}", p->backend_name()));
  }
  auto measured =
      limits_of(shape, options, attention_flags, options.own_kv ? 0 : engine_->budget().bytes);
  if (!measured)
    return pass_on(std::move(measured), fmt::format("backend {}", engine_->backend_name()));
  limits_ = *measured;
  return {};
}

result<void> session_runner::take_store(const engine::session_options& options) {
  const uint64_t budget = options.own_kv ? 0 : engine_->budget().bytes;
  const bitnet_kv_config kv = pool_of(engine_->model().shape(), options, limits_, budget);
  auto store = budget == 0 ? engine::kv_store::make(*engine_, kv, kv::eviction::lru)
                           : engine_->shared_kv(kv);
  if (!store) return std::unexpected(std::move(store.error()));
  store_ = std::move(*store);
  // The first session divided the budget between states and blocks, for its own context.
  if (limits_.n_blocks > store_->n_blocks())
    return fail(BITNET_OUT_OF_MEMORY,
                fmt::format("the sessions that share the KV budget of {} bytes have room for {} "
                            "tokens beside their states, this one asks for {}; open the one with "
                            "the largest {} first, or use a larger {}",
                            budget, uint64_t{store_->n_blocks()} * kv::block_tokens,
                            uint64_t{limits_.n_blocks} * kv::block_tokens, say(word::n_context),
                            say(word::kv_budget)));
  kv_.table.reserve(kv::blocks_for(limits_.n_context));
  store_->join(kv_);
  return {};
}

result<void> session_runner::step(uint64_t first, std::span<const int32_t> ids,
                                  uint32_t first_output, const wanted& out) {
  if (out.largest != nullptr) {
    out.largest->ids.clear();
    out.largest->logits.clear();
  }
  const auto n_outputs = static_cast<uint32_t>(ids.size()) - first_output;
  const schedule::slice one{ids, first, kv_.table, kv_.state, n_outputs};
  if (auto ok = runner_->run({&one, 1}, out.top_logits, rows_); !ok) return ok;
  if (out.uncopied != nullptr) {
    *out.uncopied = rows_;
    return {};
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const generate::logits_row& row = rows_[i];
    if (row.ids.empty() || out.largest == nullptr) {
      std::ranges::copy(row.logits,
                        out.rows.begin() + static_cast<std::ptrdiff_t>(i * row.logits.size()));
      continue;
    }
    out.largest->ids.assign(row.ids.begin(), row.ids.end());
    out.largest->logits.assign(row.listed.begin(), row.listed.end());
  }
  return {};
}

std::vector<uint32_t> session_runner::held_blocks() const {
  std::vector<uint32_t> out;
  std::ranges::copy_if(kv_.table, std::back_inserter(out),
                       [](uint32_t b) { return b != kv::no_block; });
  return out;
}

// The copy is done before the step that comes next.
result<void> session_runner::copy_state(uint32_t from, uint32_t to) {
  const uint32_t there = store_->n_blocks() + from, here = store_->n_blocks() + to;
  return runner_->copy({&there, 1}, {&here, 1});
}

result<void> session_runner::keep_state() {
  return copy_state(kv_.state, kv_.kept_state);
}

result<void> session_runner::restore_state() {
  return copy_state(kv_.kept_state, kv_.state);
}

result<void> session_runner::copy_blocks(session_runner& from) {
  if (!kv_.spare.resize_like(kv_.table, from.kv_.table))
    return fail(BITNET_OUT_OF_MEMORY, "fewer KV blocks than the session has");
  constexpr uint64_t room = 16U << 20;  // bytes that are copied at a time
  const std::vector<uint32_t> theirs = from.held_blocks(), mine = held_blocks();
  const std::size_t together =
      std::clamp<std::size_t>(room / limits_.block_bytes, 1, std::max<std::size_t>(1, mine.size()));
  std::vector<std::byte> memory(together * limits_.block_bytes);
  for (std::size_t first = 0; first < mine.size(); first += together) {
    const std::size_t n = std::min(together, mine.size() - first);
    const auto bytes = std::span(memory).first(n * limits_.block_bytes);
    if (auto ok = from.runner_->write_out(std::span(theirs).subspan(first, n),
                                          model_runner::pool_content::keys, bytes);
        !ok)
      return ok;
    if (auto ok = runner_->read_in(std::span(mine).subspan(first, n),
                                   model_runner::pool_content::keys, bytes);
        !ok)
      return ok;
  }
  if (kv_.state == kv::no_block || from.kv_.state == kv::no_block) return {};
  memory.resize(engine::state_bytes(store_->config()));
  if (auto ok =
          from.runner_->write_out({&from.kv_.state, 1}, model_runner::pool_content::states, memory);
      !ok)
    return ok;
  return runner_->read_in({&kv_.state, 1}, model_runner::pool_content::states, memory);
}

}  // namespace bitnet::runner
