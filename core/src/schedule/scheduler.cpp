#include "schedule/scheduler.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "schedule/contents.hpp"

namespace bitnet::schedule {
namespace {

gate gate_of(const options& o, const step_limits& most) {
  return {most, o.max_choices, o.max_waiting, o.max_waiting_tokens};
}

std::optional<std::string> find_fault(const options& o) {
  if (o.max_waiting == 0 || o.max_waiting_tokens == 0 || o.max_choices == 0)
    return "a scheduler that lets no request wait takes none: give max_waiting, "
           "max_waiting_tokens and max_choices at least 1";
  if (o.ageing.count() <= 0 || o.sink_patience.count() <= 0 || o.served_half_life.count() <= 0)
    return "ageing, sink_patience and served_half_life of a scheduler are times above 0";
  if (!(o.max_stretch > 1))
    return fmt::format("max_stretch of a scheduler is above 1, and {} leaves prompts no time",
                       o.max_stretch);
  return std::nullopt;
}

std::optional<std::string> find_fault(const step_limits& most) {
  const std::pair<const char*, uint32_t> needed[] = {
      {"max_tokens", most.max_tokens},   {"max_sequences", most.max_sequences},
      {"max_outputs", most.max_outputs}, {"n_context", most.n_context},
      {"n_vocab", most.n_vocab},         {"n_blocks", most.n_blocks}};
  for (const auto& [name, value] : needed)
    if (value == 0) return fmt::format("a runner whose {} is 0 runs no step", name);
  return std::nullopt;
}

}  // namespace

// --- from any thread ---

scheduler::scheduler(std::unique_ptr<contents> c) : contents_(std::move(c)) {}

scheduler::~scheduler() {
  stop();
  static_cast<void>(tick());
}

result<std::unique_ptr<scheduler>> scheduler::make(std::unique_ptr<step_runner> runner,
                                                   const tokenizer::tokenizer& tokens, options o) {
  auto fault = find_fault(o);
  if (!fault) fault = find_fault(runner->limits());
  if (fault) return fail(BITNET_INVALID_ARGUMENT, *std::move(fault));
  const auto secret = kv::random_secret();
  if (!secret) return std::unexpected(secret.error());
  return std::unique_ptr<scheduler>(
      new scheduler(std::make_unique<contents>(std::move(runner), tokens, std::move(o), *secret)));
}

std::expected<ticket, rejection> scheduler::submit(request r) {
  const auto most = contents_->in_.check(r);
  if (!most) return std::unexpected(most.error());
  auto j =
      make_job(std::move(r), contents_->tokens_, most->n_vocab, most->n_context, contents_->now());
  if (!j) return contents_->in_.count({rejection::reason::invalid, std::move(j.error())});
  return contents_->in_.add(*std::move(j));
}

void scheduler::cancel(ticket t) {
  contents_->in_.add(inbox::command::kind::cancel, t);
}
void scheduler::ready(ticket t) {
  contents_->in_.add(inbox::command::kind::ready, t);
}
void scheduler::replace(std::unique_ptr<step_runner> runner) {
  contents_->in_.replace(std::move(runner));
}
void scheduler::set_listener(std::shared_ptr<generate::row_listener> l) {
  contents_->in_.set_listener(std::move(l));
}
void scheduler::close() {
  contents_->in_.close();
}
void scheduler::stop() {
  contents_->in_.stop();
}
statistics scheduler::counted() const {
  return contents_->in_.counted();
}

// --- from the thread that ticks ---

const step_runner* scheduler::runner() const {
  return contents_->runner_.get();
}

bool scheduler::tick() {
  return contents_->tick();
}

void scheduler::run() {
  contents& c = *contents_;
  while (true) {
    const bool did = c.tick();
    if (c.stopped_ || (c.closed_ && c.jobs_.empty() && c.transfers_.empty())) return;
    if (did) continue;
    time_point until = c.bound_;
    if (!c.queue_.all().empty()) until = std::min(until, c.look_again_);
    c.in_.wait(until == time_point::max() ? std::nullopt : std::optional(until));
  }
}

scheduler::contents::contents(std::unique_ptr<step_runner> r, const tokenizer::tokenizer& t,
                              options o, const kv::hash_secret& s)
    : options_(std::move(o)),
      tokens_(t),
      secret_(s),
      in_(gate_of(options_, r->limits()), options_.step_flag),
      cost_(options_.max_stretch),
      served_(options_.served_half_life),
      queue_(options_.ageing, served_) {
  take_runner(std::move(r));
  count();
}

time_point scheduler::contents::now() const {
  return options_.now ? options_.now() : std::chrono::steady_clock::now();
}

bool scheduler::contents::tick() {
  bool did = apply();
  did |= expire();
  did |= admit();
  if (did) count();  // a step may take long: the counts are known before
  did |= step();
  did |= move_piece();
  forget_ended();
  count();
  return did;
}

bool scheduler::contents::apply() {
  if (!in_.take(came_)) return false;
  closed_ = came_.closed;
  if (auto next = std::move(came_.runner)) {
    ++counts_.runners_replaced;
    take_runner(std::move(next));
  }
  if (came_.listener) listener_ = *std::exchange(came_.listener, std::nullopt);
  for (inbox::command& c : came_.commands) {
    if (c.what == inbox::command::kind::submit) {
      accept(std::move(c.added));
      continue;
    }
    const auto at = jobs_.find(c.of);
    if (at == jobs_.end() || (at->second->live == 0 && !at->second->is_paused())) continue;
    job& j = *at->second;
    if (c.what == inbox::command::kind::cancel) {
      end_job(j, nullptr);
      continue;
    }
    delivery_.offer_again(j, now());
    note_bound(j);
    if (j.is_paused()) continue;
    for (const sequence& s : j.choices) queue_.set_may_run(&s, true);
    room_changed_ = true;
    if (j.live == 0) ended_.push_back(j.id);
  }
  came_.commands.clear();
  for (auto& t : came_.transfers) transfers_.push_back(std::move(t));
  came_.transfers.clear();
  if (came_.stopped && !stopped_) {
    stopped_ = true;
    end_all({BITNET_CANCELLED, "the scheduler was stopped before the request ended"});
  }
  return true;
}

void scheduler::contents::accept(std::unique_ptr<job> j) {
  job& added = *jobs_.emplace(j->id, std::move(j)).first->second;
  note_bound(added);
  enqueue(added.choices.front());
  room_changed_ = true;
  if (runner_ == nullptr) end_job(added, &lost_);  // it came while the runner was lost
}

// --- time bounds ---

void scheduler::contents::note_bound(const job& j) {
  if (j.deadline && j.live > 0) bound_ = std::min(bound_, *j.deadline);
  if (j.paused_since) bound_ = std::min(bound_, *j.paused_since + options_.sink_patience);
}

bool scheduler::contents::expire() {
  const time_point at = now();
  if (at < bound_) return false;
  bound_ = time_point::max();
  for (auto& [id, j] : jobs_) {
    if (j->live == 0 && !j->is_paused()) continue;
    if (const auto& since = j->paused_since; since && at - *since >= options_.sink_patience) {
      const auto seconds = std::chrono::duration<double>(options_.sink_patience).count();
      const failure why{
          BITNET_TIMEOUT,
          fmt::format("the answer was not read for {} seconds: read its events as they come, or "
                      "cancel the request",
                      seconds)};
      counts_.stalled += end_job(*j, &why);
    } else if (const auto& end = j->deadline; end && *end <= at && j->live > 0) {
      const failure why{BITNET_TIMEOUT,
                        "the deadline of the request passed before its answer was whole: give it "
                        "more time, or ask for fewer tokens"};
      counts_.expired += end_job(*j, &why);
    } else {
      note_bound(*j);
    }
  }
  return true;
}

// --- ends ---

uint32_t scheduler::contents::end_job(job& j, const failure* why) {
  leave_steps(j);
  for (sequence& s : j.choices) {
    if (s.at == phase::ended) continue;
    withdraw(s, why == nullptr ? BITNET_CANCELLED : why->status);
    if (why == nullptr) s.generation.cancel();
  }
  ended_.push_back(j.id);
  return delivery_.close(j, why, now());
}

void scheduler::contents::end_all(const failure& why) {
  for (auto& [id, j] : jobs_)
    if (j->live > 0 || j->is_paused()) end_job(*j, &why);
  end_transfers(why);
}

// Called when nothing points to them any more.
void scheduler::contents::forget_ended() {
  for (const ticket t : ended_) jobs_.erase(t);
  ended_.clear();
}

void scheduler::contents::count() {
  statistics& c = counts_;
  c.running = static_cast<uint32_t>(running_.size());
  c.running_paused = static_cast<uint32_t>(
      std::ranges::count_if(running_, [](const sequence* s) { return s->of->is_paused(); }));
  c.waiting_new = c.waiting_preempted = c.waiting_paused = 0;
  for (const waiter& w : queue_.all()) {
    if (w.is_new)
      ++c.waiting_new;
    else if (w.may_run)
      ++c.waiting_preempted;
    else
      ++c.waiting_paused;
  }
  if (memory_) {
    const kv::block_pool::statistics of_pool = memory_->pool().stats();
    c.blocks = memory_->most().n_blocks;
    c.blocks_used = of_pool.blocks_used;
    c.blocks_cached = of_pool.blocks_cached;
    c.blocks_reserved = of_pool.blocks_reserved;
    c.states = memory_->most().n_states;
    c.states_used = of_pool.states_used;
    c.evictions = evictions_before_ + of_pool.evicted_blocks;
  }
  c.clients = served_.n_clients();
  c.slots = max_running_;
  list_sequences();
  in_.settle(std::exchange(left_, 0), std::exchange(tokens_left_, 0), c);
}

}  // namespace bitnet::schedule
