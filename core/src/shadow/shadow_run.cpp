#include "shadow/shadow_run.hpp"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include "base/new_thread.hpp"

namespace bitnet::shadow {
namespace {

using clock = std::chrono::steady_clock;

constexpr uint32_t most_waiting = 4096;
constexpr int nicest = 19;

// Threads that it starts inherit the priority. If the system does not allow it, it stays as it is.
void lower_this_thread() {
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nicest));
}

result<void> check(const options& o) {
  if (!(o.share > 0 && o.share <= 1))
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("share of a shadow is {}: above 0 and at most 1 expected", o.share));
  if (o.waiting == 0 || o.waiting > most_waiting)
    return fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("{} rows of a shadow may wait: 1 to {} expected", o.waiting, most_waiting));
  if (!(o.op_tolerance >= 0))
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("op_tolerance of a shadow is {}: 0 or more expected", o.op_tolerance));
  if (o.sequences.embeddings)
    return fail(BITNET_INVALID_ARGUMENT,
                "a shadow compares logits, and sequences that are opened for embeddings have none");
  return {};
}

}  // namespace

// The listener of one session or scheduler.
class shadow_run::source final : public generate::row_listener {
 public:
  source(std::shared_ptr<shadow_run> to, uint64_t number)
      : to_(std::move(to)), number_(number), share_(to_->options_.share) {}

  bool wants_next() override {
    if (to_->over_.load(std::memory_order_relaxed)) return false;
    to_->seen_.fetch_add(1, std::memory_order_relaxed);
    return share_.next();
  }
  void offer(const generate::row_origin& of, std::span<const int32_t> tokens,
             std::span<const float> logits) override {
    to_->offer({number_, of, tokens.size() - 1}, tokens, logits);
  }

 private:
  const std::shared_ptr<shadow_run> to_;
  const uint64_t number_;
  even_share share_;
};

result<std::shared_ptr<shadow_run>> shadow_run::open(engine::engine_ptr on, options o) {
  if (auto ok = check(o); !ok) return std::unexpected(std::move(ok.error()));
  o.sequences.own_kv = true;
  o.sequences.profile = false;
  o.sequences.trace = {};
  o.sequences.on_loss = nullptr;
  o.sequences.cancelled = o.cancelled.get();
  auto session = sequence::session::open(on, o.sequences,
                                         o.cancelled ? cancel_flags::token_of(*o.cancelled) : 0);
  if (!session) return std::unexpected(std::move(session.error()));
  std::shared_ptr<shadow_run> out(new shadow_run(std::move(on), std::move(o), std::move(*session)));
  auto thread = new_thread([self = out.get()] { self->work(); });
  if (!thread) return std::unexpected(std::move(thread.error()));
  out->thread_ = std::move(*thread);
  return out;
}

shadow_run::shadow_run(engine::engine_ptr on, options o, std::unique_ptr<sequence::session> s)
    : options_(std::move(o)),
      n_context_(s->capacity()),
      on_(engine::use_of(on->main(), {})),
      waiting_(options_.waiting, s->row_floats(), n_context_),
      engine_(std::move(on)),
      session_(std::move(s)),
      row_(session_->row_floats()) {}

shadow_run::~shadow_run() {
  end();
}

void shadow_run::end() {
  over_.store(true, std::memory_order_relaxed);
  if (options_.cancelled) options_.cancelled->store(true, std::memory_order_relaxed);
  waiting_.stop();
  if (thread_.joinable()) thread_.join();
  session_.reset();
  engine_.reset();
}

std::shared_ptr<generate::row_listener> shadow_run::attach() {
  return std::make_shared<source>(shared_from_this(),
                                  sources_.fetch_add(1, std::memory_order_relaxed) + 1);
}

void shadow_run::offer(const row_place& at, std::span<const int32_t> tokens,
                       std::span<const float> logits) {
  const auto start = clock::now();
  offered_.fetch_add(1, std::memory_order_relaxed);
  if (!waiting_.offer(at, tokens, logits)) dropped_.fetch_add(1, std::memory_order_relaxed);
  const auto took = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start).count());
  offer_ns_.fetch_add(took, std::memory_order_relaxed);
  uint64_t longest = longest_offer_ns_.load(std::memory_order_relaxed);
  while (took > longest &&
         !longest_offer_ns_.compare_exchange_weak(longest, took, std::memory_order_relaxed)) {
  }
}

// No exception leaves the thread.
void shadow_run::work() {
  result<void> ended;
  try {
    ended = compare_all();
  } catch (const std::bad_alloc&) {
    ended = fail(BITNET_OUT_OF_MEMORY,
                 "the shadow has no memory to compare a row; close sessions, and start it again");
  } catch (const std::exception& e) {
    ended = fail(BITNET_INTERNAL, e.what());
  }
  if (ended || over_.exchange(true, std::memory_order_relaxed)) return;
  {
    const std::lock_guard lock(mutex_);
    why_ = ended.error();
  }
  if (options_.on_failure) options_.on_failure(ended.error());
}

// The runtime's pool runs one step at a time, so a step of the shadow would hold up those of the
// texts: this thread has a pool of its own.
result<void> shadow_run::compare_all() {
  lower_this_thread();
  threads::pool own(options_.threads, {.poll = 0, .cpus = options_.cpus});
  if (const auto& why = own.shortage()) return std::unexpected(*why);
  const threads::pool_of_thread here(own);
  while (const waiting_rows::row* live = waiting_.take()) {
    auto ok = compare_one(*live);
    waiting_.give_back();
    if (!ok) return ok;
  }
  return {};
}

// Tokens that the former row shares are not computed again.
result<void> shadow_run::compare_one(const waiting_rows::row& live) {
  const std::span<const int32_t> tokens = live.tokens;
  const auto has = session_->tokens();
  const auto differs = std::ranges::mismatch(has, tokens).in1;
  const auto same =
      std::min<std::size_t>(static_cast<std::size_t>(differs - has.begin()), tokens.size() - 1);
  if (same < has.size())
    if (auto ok = session_->truncate(same); !ok) return ok;
  if (auto ok = session_->eval(tokens.subspan(same), false, row_); !ok) return ok;
  const row_difference apart = compare(live.logits, row_);
  const std::lock_guard lock(mutex_);
  compared_.add(apart, live.at, tokens);
  return {};
}

result<void> shadow_run::find_op(const engine::engine_ptr& live) {
  search found;
  std::vector<int32_t> tokens;
  {
    const std::lock_guard lock(mutex_);
    if (compared_.rows == compared_.same_bytes)
      return fail(BITNET_NOT_FOUND,
                  fmt::format("none of the {} rows that were compared differs, so that there is no "
                              "op to look for; let more rows be compared",
                              compared_.rows));
    tokens = compared_.worst.tokens;
  }
  tokens.resize(std::min(tokens.size(), most_tokens_to_bisect));
  found.tokens = tokens.size();
  threads::pool own(options_.threads, {.poll = 0, .cpus = options_.cpus});
  if (const auto& why = own.shortage()) return std::unexpected(*why);
  const threads::pool_of_thread here(own);
  auto first = first_op_that_differs(live, engine_, tokens, options_.op_tolerance);
  if (!first) return std::unexpected(std::move(first.error()));
  found.first = *std::move(first);
  const std::lock_guard lock(mutex_);
  searched_ = std::move(found);
  return {};
}

shadow_run::facts shadow_run::describe() const {
  facts out;
  out.on = on_;
  out.share = options_.share;
  out.seen = seen_.load(std::memory_order_relaxed);
  out.offered = offered_.load(std::memory_order_relaxed);
  out.dropped = dropped_.load(std::memory_order_relaxed);
  out.waiting = waiting_.size();
  out.offer_ns = offer_ns_.load(std::memory_order_relaxed);
  out.longest_offer_ns = longest_offer_ns_.load(std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  out.compared = compared_;
  out.why = why_;
  out.searched = searched_;
  return out;
}

}  // namespace bitnet::shadow
