#include "serving/async_engine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/new_thread.hpp"
#include "engine/kv_pools.hpp"
#include "runner/model_runner.hpp"
#include "schedule/admission.hpp"
#include "serving/saved_form.hpp"

namespace bitnet::serving {
namespace {

// A program has at most this many bytes of logits in a step.
constexpr uint64_t rows_bytes = 64U << 20;

constexpr uint32_t most_sequences = 1024;

constexpr std::size_t most_moves_kept = 64;

// Rows of a step for drafted tokens, beside one for each sequence.
constexpr uint32_t rows_ahead = 64;

// Limits of a program that runs all sequences: a row and a token for each, and for drafts.
result<engine::limits> limits_for(const engine::engine& e, const engine_options& o) {
  uint32_t attention_flags = UINT32_MAX;
  for (const auto& p : e.parts()) {
    attention_flags &= p->choice().device.attention_flags;
    if (auto ok = check_kv_types(p->choice(), e.model().shape(), o.sequences); !ok)
      return pass_on(std::move(ok), fmt::format("backend {}", p->backend_name()));
  }
  auto most =
      limits_of(e.model().shape(), o.sequences, attention_flags, o.kv_bytes, o.max_sequences);
  if (!most) return most;
  if (o.sequences.embeddings) {  // every token of a step may have its row
    most->n_batch = most->max_outputs;
    return most;
  }
  const uint64_t row_bytes = most->row_floats * sizeof(float);
  most->max_outputs = static_cast<uint32_t>(std::clamp<uint64_t>(
      rows_bytes / row_bytes, 1, std::min(o.max_sequences + rows_ahead, most->n_batch)));
  return most;
}

bitnet_kv_config pool_for(const engine::engine& e, const engine_options& o,
                          const engine::limits& most) {
  const uint64_t bytes =
      o.kv_bytes != 0 ? o.kv_bytes : room_for(most, o.max_sequences, e.free_memory());
  return pool_of(e.model().shape(), o.sequences, most, bytes);
}

}  // namespace

uint64_t room_for(const engine::limits& most, uint32_t max_sequences, uint64_t free_bytes) {
  // With a window the scheduler may reserve a block more than a sequence holds in its steps.
  const schedule::step_limits of_step{.max_tokens = most.n_batch,
                                      .n_context = most.n_context,
                                      .window = most.window,
                                      .window_keep = most.window_keep};
  const uint64_t n_blocks =
      std::max(most.n_blocks, schedule::most_blocks_of(most.n_context, of_step));
  const uint64_t one = most.states_bytes + n_blocks * most.block_bytes;
  const uint64_t all = one * max_sequences;
  return std::max(one, free_bytes == 0 ? all : std::min(all, free_bytes / 2));
}

async_engine::async_engine(engine_options o) : options_(std::move(o)) {}

result<std::unique_ptr<async_engine>> async_engine::open(std::shared_ptr<engine::engine> on,
                                                         engine_options o) {
  if (o.max_sequences == 0 || o.max_sequences > most_sequences)
    return fail(BITNET_INVALID_ARGUMENT, fmt::format("max_sequences {} is not between 1 and {}",
                                                     o.max_sequences, most_sequences));
  const tokenizer::tokenizer& tokens = on->model().tokens();
  std::unique_ptr<async_engine> out(new async_engine(std::move(o)));
  auto runner = out->runner_on(std::move(on));
  if (!runner) return std::unexpected(std::move(runner.error()));
  out->move_to(**runner, "");
  schedule::options scheduling = out->options_.scheduling;
  scheduling.step_flag = out->options_.step_flag.get();
  if (out->options_.sequences.on_loss)
    scheduling.on_loss = [self = out.get()](const failure& why) { return self->recover(why); };
  auto made = schedule::scheduler::make(std::move(*runner), tokens, std::move(scheduling));
  if (!made) return std::unexpected(std::move(made.error()));
  out->scheduler_ = std::move(*made);
  auto thread = new_thread([s = out->scheduler_.get()] { s->run(); });
  if (!thread) return std::unexpected(std::move(thread.error()));
  out->thread_ = std::move(*thread);
  return out;
}

async_engine::~async_engine() {
  if (!scheduler_) return;
  scheduler_->stop();
  if (thread_.joinable()) thread_.join();
  scheduler_.reset();  // before the members that it uses
}

// Makes the KV pool with the runner: all sequences share its blocks, and it ends with the runner.
result<std::unique_ptr<runner::model_runner>> async_engine::runner_on(
    std::shared_ptr<engine::engine> e) const {
  auto most = limits_for(*e, options_);
  if (!most) return std::unexpected(std::move(most.error()));
  result<std::shared_ptr<const engine::kv_pools>> pools(nullptr);
  {
    const std::lock_guard device_lock(e->device_mutex());
    pools = engine::kv_pools::make(*e, pool_for(*e, options_, *most));
  }
  if (!pools) return std::unexpected(std::move(pools.error()));
  const cancel_flags::flag* const flag = options_.step_flag.get();
  auto made = runner::model_runner::open(std::move(e), options_.sequences, *most,
                                         options_.max_sequences, std::move(*pools),
                                         flag == nullptr ? 0 : cancel_flags::token_of(*flag));
  if (made) (*made)->set_form(form_of(**made, options_.sequences));
  return made;
}

// Notes that the engine of `r` is current, unless an offer moved it away from `left`.
void async_engine::move_to(const runner::model_runner& r, const std::string& why,
                           const engine::engine* left) {
  const std::lock_guard lock(mutex_);
  if (left != nullptr && on_.get() != left) return;
  if (on_) {
    ++facts_.moves;
    if (last_moves_.size() == most_moves_kept) last_moves_.erase(last_moves_.begin());
    last_moves_.push_back({facts_.device, r.on()->choice().device_name(), why});
  }
  on_ = r.on();
  facts_.backend = on_->backend_name();
  facts_.device = on_->choice().device_name();
  facts_.limits = r.limits();
  facts_.block_bytes = r.block_bytes();
  facts_.form = r.form();
  facts_.dtype_k = options_.sequences.dtype_k;
  facts_.dtype_v = options_.sequences.dtype_v;
}

// Finds another engine after a loss, until one takes the model. An engine that was offered and not
// taken yet is tried first.
result<std::unique_ptr<schedule::step_runner>> async_engine::recover(const failure& first) {
  failure why = first;
  // All runners of the scheduler come from runner_on().
  const auto* const failed = static_cast<const runner::model_runner*>(scheduler_->runner());
  const std::shared_ptr<engine::engine> left = failed->on();
  std::shared_ptr<engine::engine> lost = left, offered = headed_for();
  for (;;) {
    auto other = options_.sequences.on_loss(lost, why);
    if (offered != left) other = std::exchange(offered, left);
    if (!other) return std::unexpected(std::move(other.error()));
    auto runner = runner_on(*other);
    if (runner) {
      move_to(**runner, why.message, left.get());
      return std::unique_ptr<schedule::step_runner>(std::move(*runner));
    }
    if (!is_loss(runner.error().status)) return std::unexpected(std::move(runner.error()));
    lost = std::move(*other);
    why = std::move(runner.error());
  }
}

std::shared_ptr<engine::engine> async_engine::headed_for() const {
  const std::lock_guard lock(mutex_);
  return on_;
}

result<void> async_engine::offer(std::shared_ptr<engine::engine> to, engine::moving,
                                 const std::string& why) {
  const std::lock_guard one(offering_);
  const uint32_t before = describe().limits.n_context;
  auto runner = runner_on(to);
  if (!runner) return std::unexpected(std::move(runner.error()));
  if ((*runner)->limits().n_context < before)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("backend {}: it has room for {} tokens, the scheduler for {}",
                            to->backend_name(), (*runner)->limits().n_context, before));
  move_to(**runner, why);
  scheduler_->replace(std::move(*runner));
  return {};
}

void async_engine::set_listener(std::shared_ptr<generate::row_listener> l) {
  const std::lock_guard lock(mutex_);
  listener_ = l;
  scheduler_->set_listener(std::move(l));
}

std::optional<engine::session_options> async_engine::sequences() const {
  if (options_.sequences.embeddings) return std::nullopt;
  engine::session_options out = options_.sequences;
  out.n_context = describe().limits.n_context;
  return out;
}

bool async_engine::lend_rows(const std::shared_ptr<generate::row_listener>& l) {
  const std::lock_guard lock(mutex_);
  if (listener_ != nullptr) return false;
  listener_ = l;
  scheduler_->set_listener(l);
  return true;
}

void async_engine::take_back_rows(const std::shared_ptr<generate::row_listener>& l) {
  const std::lock_guard lock(mutex_);
  if (listener_ != l) return;
  listener_ = nullptr;
  scheduler_->set_listener(nullptr);
}

bool async_engine::is_lost() const {
  return scheduler_->counted().first_waiting == schedule::blocked_by::no_runner;
}

std::vector<async_engine::move> async_engine::last_moves() const {
  const std::lock_guard lock(mutex_);
  return last_moves_;
}

async_engine::facts async_engine::describe() const {
  const std::lock_guard lock(mutex_);
  return facts_;
}

}  // namespace bitnet::serving
