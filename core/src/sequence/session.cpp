#include "sequence/session.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/wording.hpp"
#include "generate/token_ids.hpp"
#include "model/context_room.hpp"

namespace bitnet::sequence {
namespace {

using clock = std::chrono::steady_clock;
using kv::block_tokens;
using kv::blocks_for;
using kv::no_block;

constexpr std::size_t most_moves_kept = 64;

double ms_since(clock::time_point start) {
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

// Fails unless `ids` fit into the context behind `before` tokens.
result<void> check_room(uint64_t before, uint64_t n_context, std::span<const int32_t> ids) {
  if (before + ids.size() <= n_context) return {};
  return fail(BITNET_CONTEXT_FULL,
              fmt::format("{} tokens and {} more do not fit the context of "
                          "{}; use a shorter prompt or a larger {}",
                          before, ids.size(), n_context, say(word::n_context)));
}

// How many tokens fit into `room` beside the states; 0: unknown.
uint64_t max_context(const runner::session_runner::limits& most, uint64_t room) {
  return model::max_context(room - std::min(room, most.states_bytes), most.block_bytes,
                            block_tokens);
}

}  // namespace

session::session(const engine::session_options& options, uint64_t cancel_token)
    : options_(options), cancel_token_(cancel_token), cancelled_(options.cancelled) {}

result<std::unique_ptr<session>> session::open(std::shared_ptr<engine::engine> e,
                                               const engine::session_options& options,
                                               uint64_t cancel_token) {
  std::unique_ptr<session> s(new session(options, cancel_token));
  // Before its blocks are allocated: memory that is not yet written to counts as free.
  const uint64_t free = e->free_memory();
  const uint64_t budget = options.own_kv ? 0 : e->budget().bytes;
  auto place = runner::session_runner::open(std::move(e), options, cancel_token);
  if (!place) return std::unexpected(std::move(place.error()));
  if (options.window == 0)
    s->max_context_ = max_context((*place)->most(), budget == 0 ? free : std::min(free, budget));
  s->runner_ = std::move(*place);
  s->tokens_.reserve(s->limits().n_context);
  return s;
}

result<void> session::append(int32_t id) {
  if (tokens_.size() >= limits().n_context)
    return fail(BITNET_CONTEXT_FULL,
                fmt::format("the context of {} tokens is full; use a larger {}", limits().n_context,
                            say(word::n_context)));
  tokens_.push_back(id);
  note_ahead(id);
  return {};
}

// Protects the session's blocks from eviction for its lifetime. begin() provides `blocks` blocks;
// 0: only the blocks that the session has. Tokens whose blocks were evicted are evaluated again.
class session::hold {
 public:
  static result<hold> begin(session& s, uint64_t blocks) {
    const auto stop = [&] {
      return s.cancelled_ != nullptr && s.cancelled_->load(std::memory_order_relaxed);
    };
    if (auto ok = s.runner_->store().begin(s.runner_->kv(), blocks, stop); !ok)
      return std::unexpected(std::move(ok.error()));
    if (s.runner_->kv().lost) {
      s.evaluated_ = s.kept_at_ = 0;
      s.state_spoilt_ = false;
    }
    s.runner_->kv().lost = false;
    return hold(s);
  }
  ~hold() {
    if (session_ != nullptr) session_->runner_->store().end(session_->runner_->kv());
  }
  hold(hold&& other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
  hold& operator=(hold&&) = delete;

 private:
  explicit hold(session& s) : session_(&s) {}
  session* session_;  // nullptr: moved from
};

result<void> session::truncate(uint64_t n) {
  if (n > tokens_.size())
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("cannot keep {} tokens of {}", n, tokens_.size()));
  auto mine = hold::begin(*this, 0);
  if (!mine) return std::unexpected(std::move(mine.error()));
  ahead_.clear();
  tokens_.resize(n);
  settle(std::min(evaluated_, n));
  return {};
}

uint64_t session::first_seen() const {
  return limits().window == 0 || evaluated_ + 1 <= limits().window
             ? 0
             : evaluated_ + 1 - limits().window;
}

// Gives back the blocks that no later token will see.
void session::forget_unseen() {
  runner_->kv().spare.drop(runner_->kv().table, blocks_for(limits().window_keep),
                           first_seen() / block_tokens);
}

// Restores the latest state within the first `evaluated` tokens, and returns its position.
uint64_t session::settle_state(uint64_t evaluated) {
  if (kept_at_ > evaluated) kept_at_ = 0;
  if (evaluated == evaluated_ && !state_spoilt_) return evaluated;
  state_spoilt_ = false;
  if (kept_at_ != 0 && !runner_->restore_state()) kept_at_ = 0;
  return kept_at_;
}

// Keeps a copy of the state before a step of several tokens. Such a step usually begins a turn of a
// chat, and callers usually take back whole turns.
result<void> session::keep_state() {
  if (!has_state() || evaluated_ == 0 || tokens_.size() - evaluated_ < 2) return {};
  if (kept_at_ == evaluated_) return {};  // it is kept already
  if (auto ok = runner_->keep_state(); !ok) return ok;
  kept_at_ = evaluated_;
  return {};
}

// Goes back to the first `evaluated` tokens. If the window has moved past tokens that the next one
// sees, all are evaluated again: the keys of a token depend on all windows before it.
void session::settle(uint64_t evaluated) {
  evaluated_ = has_state() ? settle_state(evaluated) : evaluated;
  runner_->kv().spare.resize(runner_->kv().table, evaluated_);
  for (uint64_t b = 0; b < runner_->kv().table.size(); ++b) {
    const bool seen =
        b * block_tokens < limits().window_keep || (b + 1) * block_tokens > first_seen();
    if (!seen || runner_->kv().table[b] != no_block) continue;
    evaluated_ = 0;
    runner_->kv().spare.resize(runner_->kv().table, 0);
    return;
  }
}

result<void> session::eval(std::span<const int32_t> ids, bool all_rows, std::span<float> rows) {
  const uint64_t n_rows = rows.empty() ? 0 : (all_rows ? ids.size() : 1);
  const uint32_t step = n_rows != 0 && all_rows ? limits().max_outputs : limits().n_batch;
  const auto heard = n_rows != 0 ? listener() : nullptr;
  auto done = eval({ids, n_rows, step}, runner::session_runner::wanted{rows});
  if (heard != nullptr && done)
    heard->offer({}, tokens_, rows.subspan((n_rows - 1) * row_floats(), row_floats()));
  return done;
}

result<void> session::eval_top(std::span<const int32_t> ids, uint32_t top, std::span<float> rows,
                               runner::listed_logits& largest) {
  const auto heard = rows.empty() ? nullptr : listener();
  const uint32_t listed = heard != nullptr || options_.low_memory ? 0 : top;
  auto done = eval({ids, rows.empty() ? 0U : 1U, limits().n_batch},
                   runner::session_runner::wanted{rows, listed, &largest});
  if (heard != nullptr && done) heard->offer({}, tokens_, rows.first(row_floats()));
  return done;
}

result<void> session::eval(const evaluation& what, const runner::session_runner::wanted& out) {
  ahead_.clear();
  if (has_offer_.load(std::memory_order_acquire)) take_offer();
  auto start = clock::now();
  auto done = evaluate(what, out);
  while (!done && is_loss(done.error().status) && options_.on_loss) {
    if (auto safe = recover(std::move(done.error())); !safe) return safe;
    start = clock::now();
    done = evaluate(what, out);
  }
  if (catching_up_ && done) {
    moves_.back().pause_ms += ms_since(start);
    catching_up_ = false;
  }
  return done;
}

// How many tokens the next step has. Rows that are not copied must come from one step.
uint64_t session::step_of(const evaluation& what, bool uncopied) const {
  const uint64_t left = tokens_.size() - evaluated_;
  const uint64_t n = std::min<uint64_t>(left, what.step_tokens);
  const uint64_t before_rows = left - std::min(left, what.n_rows);
  return uncopied && n < left && before_rows != 0 ? std::min(n, before_rows) : n;
}

result<void> session::evaluate(const evaluation& what, const runner::session_runner::wanted& out) {
  const auto& [ids, n_rows, step_tokens] = what;
  const uint64_t before = tokens_.size();
  const uint64_t width = limits().row_floats;
  if (auto ok = check_room(before, limits().n_context, ids); !ok) return ok;
  if (auto ok = generate::check_ids(ids, owner().model().shape().n_vocab); !ok) return ok;
  if (out.uncopied == nullptr && out.rows.size() < n_rows * width)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("room for {} logits, but {} are due", out.rows.size(), n_rows * width));
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  const bool again = tokens_.size() == evaluated_;  // the last token is evaluated again
  if (again && n_rows == 0) return {};
  if (tokens_.empty())
    return fail(BITNET_INVALID_ARGUMENT,
                "logits were asked for, but there is no token to evaluate");
  auto mine = hold::begin(*this, std::min<uint64_t>(blocks_for(tokens_.size()), limits().n_blocks));
  if (!mine) {
    tokens_.resize(before);
    return std::unexpected(std::move(mine.error()));
  }
  if (again || state_spoilt_) settle(evaluated_ - (again ? 1 : 0));
  const uint64_t evaluated_before = evaluated_;
  const auto undo = [&](failure why) -> result<void> {
    tokens_.resize(before);
    state_spoilt_ = true;
    settle(evaluated_before);
    return std::unexpected(std::move(why));
  };

  if (auto ok = keep_state(); !ok) return undo(std::move(ok.error()));
  uint64_t written = 0;  // rows
  const uint64_t first_row = tokens_.size() - std::min<uint64_t>(n_rows, tokens_.size());
  while (evaluated_ < tokens_.size()) {
    const uint64_t n = step_of(what, out.uncopied != nullptr);
    forget_unseen();
    if (!runner_->kv().spare.resize(runner_->kv().table, evaluated_ + n))
      return undo({BITNET_INTERNAL, "fewer KV blocks than a step needs"});
    const std::span chunk(tokens_.data() + evaluated_, n);
    const uint64_t first_output = std::min(first_row - std::min(first_row, evaluated_), n);
    const uint64_t n_outputs = n - first_output;
    runner::session_runner::wanted of_step = out;
    if (out.uncopied == nullptr)
      of_step.rows = out.rows.subspan(written * width, n_outputs * width);
    if (auto ok = runner_->step(evaluated_, chunk, static_cast<uint32_t>(first_output), of_step);
        !ok)
      return undo(std::move(ok.error()));
    ++steps_;
    steps_tokens_ += n;
    written += n_outputs;
    evaluated_ += n;
  }
  return {};
}

// ---- drafts ------------------------------------------------------------------------------------

uint64_t session::room_ahead() const {
  const uint64_t of_step = std::min(limits().n_batch, limits().max_outputs) - 1;
  return std::min<uint64_t>(of_step, limits().n_context - tokens_.size());
}

result<void> session::eval_ahead(std::span<const int32_t> draft, uint32_t top,
                                 std::vector<generate::logits_row>& rows) {
  if (tokens_.size() == evaluated_ || draft.size() > room_ahead())
    return fail(BITNET_INTERNAL, fmt::format("a draft of {} tokens where {} have room, or behind "
                                             "no token that waits",
                                             draft.size(), room_ahead()));
  runner::session_runner::wanted out;
  const auto heard = listener();
  out.top_logits = heard != nullptr || options_.low_memory ? 0 : top;
  out.uncopied = &rows;
  if (auto ok = eval({draft, draft.size() + 1, limits().n_batch}, out); !ok) return ok;
  begin_ahead(draft);
  if (heard != nullptr) heard->offer({}, tokens_, rows.front().logits);
  return {};
}

// Takes the draft back out of the tokens. Its keys stay where they are, until others are written
// there. A state is that behind the whole draft; the one from before the step is kept.
void session::begin_ahead(std::span<const int32_t> draft) {
  tokens_.resize(tokens_.size() - draft.size());
  ahead_.assign(draft.begin(), draft.end());
  n_ahead_ = 0;
  if (draft.empty()) return;
  evaluated_ = has_state() ? kept_at_ : tokens_.size();
  state_spoilt_ = has_state();
}

// The token that was appended last may be the next one of the draft.
void session::note_ahead(int32_t id) {
  if (ahead_.empty()) return;
  if (id != ahead_[n_ahead_]) {
    ahead_.clear();
    return;
  }
  ++n_ahead_;
  if (!has_state()) evaluated_ = tokens_.size();
  if (n_ahead_ < ahead_.size()) return;
  evaluated_ = tokens_.size();
  state_spoilt_ = false;
  ahead_.clear();
}

// ---- moving ------------------------------------------------------------------------------------

result<std::unique_ptr<runner::session_runner>> session::runner_on(
    std::shared_ptr<engine::engine> e) const {
  engine::session_options same = options_;
  {
    const std::lock_guard lock(mutex_);
    same.n_context = limits().n_context;  // the rotation of moved keys may depend on it
  }
  auto place = runner::session_runner::open(std::move(e), same, cancel_token_);
  if (!place) return place;
  const std::lock_guard lock(mutex_);
  if ((*place)->most().n_context < limits().n_context)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("backend {}: it has room for {} tokens, the session for {}",
                            (*place)->on()->backend_name(), (*place)->most().n_context,
                            limits().n_context));
  return place;
}

result<void> session::move(std::shared_ptr<engine::engine> to, engine::moving how,
                           const std::string& why) {
  auto place = runner_on(std::move(to));
  if (!place) return std::unexpected(std::move(place.error()));
  std::optional<offered> late;  // an offer from before this call
  {
    const std::lock_guard lock(mutex_);
    late.swap(offer_);
  }
  switch_to(std::move(*place), how, why);
  return {};
}

result<void> session::offer(std::shared_ptr<engine::engine> to, engine::moving how,
                            const std::string& why) {
  auto place = runner_on(std::move(to));
  if (!place) return std::unexpected(std::move(place.error()));
  std::optional<offered> made(offered{std::move(*place), how, why});
  const std::lock_guard lock(mutex_);
  offer_.swap(made);
  has_offer_.store(true, std::memory_order_release);
  return {};
}

std::shared_ptr<engine::engine> session::headed_for() const {
  const std::lock_guard lock(mutex_);
  return offer_ ? offer_->place->on() : runner_->on();
}

void session::set_listener(std::shared_ptr<generate::row_listener> l) {
  {
    const std::lock_guard lock(mutex_);
    listener_next_ = l;
  }
  listener_ = std::move(l);
}

std::optional<engine::session_options> session::sequences() const {
  if (options_.embeddings) return std::nullopt;
  engine::session_options out = options_;
  const std::lock_guard lock(mutex_);
  out.n_context = limits().n_context;
  return out;
}

bool session::lend_rows(const std::shared_ptr<generate::row_listener>& l) {
  const std::lock_guard lock(mutex_);
  if (listener_next_ != nullptr) return false;
  listener_next_ = l;
  has_offer_.store(true, std::memory_order_release);
  return true;
}

void session::take_back_rows(const std::shared_ptr<generate::row_listener>& l) {
  const std::lock_guard lock(mutex_);
  if (listener_next_ != l) return;
  listener_next_ = nullptr;
  has_offer_.store(true, std::memory_order_release);
}

void session::take_offer() {
  std::optional<offered> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(offer_);
    listener_ = listener_next_;
    has_offer_.store(false, std::memory_order_release);
  }
  if (taken) switch_to(std::move(taken->place), taken->how, taken->why);
}

void session::switch_to(std::unique_ptr<runner::session_runner> to, engine::moving how,
                        const std::string& why) {
  const auto start = clock::now();
  if (const auto ran = runner_->ran()) engine::add(ran_before_, *ran);
  const bool copied = how == engine::moving::migrate && copy_to(*to);
  const double copy_ms = copied ? ms_since(start) : 0;
  if (!copied) evaluated_ = 0;
  kept_at_ = 0;
  catching_up_ = !copied;
  {
    const std::lock_guard lock(mutex_);
    runner_.swap(to);
  }
  move_record record{to->on()->choice().device_name(), owner().choice().device_name(), why,
                     copied ? "migrate" : "recompute"};
  to.reset();
  record.pause_ms = ms_since(start);
  record.copy_ms = copy_ms;
  moves_.push_back(std::move(record));
  ++n_moves_;
  if (moves_.size() > most_moves_kept) moves_.pop_front();
}

// Returns true if the keys and values of all evaluated tokens are on the new engine.
bool session::copy_to(runner::session_runner& to) {
  const auto mine = hold::begin(*this, 0);
  if (!mine) return false;
  const auto& table = runner_->kv().table;
  const auto held = table.size() - static_cast<std::size_t>(std::ranges::count(table, no_block));
  if (!to.store().begin(to.kv(), held, [] { return true; })) return false;
  const bool copied = to.copy_blocks(*runner_).has_value();
  if (!copied) to.kv().spare.drop(to.kv().table, 0, to.kv().table.size());
  if (!copied) to.kv().table.clear();
  to.store().end(to.kv());
  return copied;
}

result<void> session::recover(failure why) {
  std::shared_ptr<engine::engine> lost = runner_->on();
  for (;;) {
    auto other = options_.on_loss(lost, why);
    if (!other) return std::unexpected(std::move(other.error()));
    auto moved = move(*other, engine::moving::recompute, why.message);
    if (moved || !is_loss(moved.error().status)) return moved;
    lost = std::move(*other);
    why = std::move(moved.error());
  }
}

result<session::usage> session::report() const {
  usage out;
  auto ran = runner_->ran();
  if (!ran) return std::unexpected(std::move(ran.error()));
  out.ran = ran_before_;
  engine::add(out.ran, *ran);
  out.steps = steps_;
  out.tokens = steps_tokens_;
  const engine::kv_store::usage kv = runner_->kv_usage();
  out.kv_blocks = static_cast<uint32_t>(kv.blocks);
  out.evictions = kv.evictions;
  out.kv_budget = owner().budget().bytes;
  out.window = limits().window;
  out.window_keep = limits().window_keep;
  out.dtype_k = options_.dtype_k;
  out.dtype_v = options_.dtype_v;
  out.kv_bytes = runner_->kv_bytes();
  if (n_moves_ == 0) out.max_context = max_context_;
  return out;
}

}  // namespace bitnet::sequence
