#include "session/seat.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/environment.hpp"
#include "plugin/loading/kept_state.hpp"

namespace bitnet::session {

seat::seat(std::shared_ptr<engine> e, uint64_t cancel_token)
    : engine_(std::move(e)),
      cancel_token_(cancel_token),
      step_timeout_ns_(environment::step_timeout_ns()) {}

result<std::unique_ptr<seat>> seat::open(std::shared_ptr<engine> e, const session_options& options,
                                         uint64_t cancel_token) {
  std::unique_ptr<seat> s(new seat(std::move(e), cancel_token));
  const engine& on = *s->engine_;
  const std::lock_guard turn(on.device_turn());
  auto ready = s->measure(options);
  if (ready) ready = s->take_store(options);
  if (!ready) return std::unexpected(std::move(ready.error()));
  s->places_.reserve(on.parts().size());
  for (std::size_t i = 0; i < on.parts().size(); ++i) {
    const plugin::kept_process kept(on.parts()[i]->choice().backend->complaints());
    if (auto ok = s->build(options, i); !ok)
      return pass_on(std::move(ok), fmt::format("backend {}", on.parts()[i]->backend_name()));
  }
  return s;
}

seat::~seat() {
  const std::lock_guard turn(engine_->device_turn());
  if (hung_) {
    leave_behind();
    return;
  }
  for (place& p : places_) {
    const plugin::kept_thread kept(*p.on->choice().backend->complaints());
    p.queue = {};
    p.binding = {};
    p.program = {};
  }
  const plugin::kept_thread kept(*engine_->choice().backend->complaints());
  if (store_) store_->leave(kv_);
  store_.reset();
}

// A step that never ended may still write to all that it was given.
void seat::leave_behind() {
  struct left {
    std::shared_ptr<engine> on;
    std::shared_ptr<kv_store> store;
    std::vector<place> places;
  };
  if (store_) {
    kv_.table.clear();
    kv_.spare = kv_blocks{0};
    kv_.state = kv_.kept_state = no_block;
    store_->leave(kv_);
  }
  // Never freed, on purpose.
  [[maybe_unused]] static std::vector<left*>& all = *new std::vector<left*>;
  static std::mutex turn;
  const std::lock_guard lock(turn);
  all.push_back(new left{engine_, std::move(store_), std::move(places_)});
}

uint64_t seat::kv_bytes() const {
  const bitnet_kv_config& all = store_->config();
  return limits_.block_bytes * all.n_blocks + uint64_t{all.n_states} * state_bytes(all);
}

// What this engine can give to a session of these options.
result<void> seat::measure(const session_options& options) {
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
  embeddings_ = options.embeddings;
  return {};
}

result<void> seat::take_store(const session_options& options) {
  const uint64_t budget = options.own_kv ? 0 : engine_->budget().bytes;
  const bitnet_kv_config kv = pool_of(engine_->model().shape(), options, limits_, budget);
  auto store = budget == 0 ? kv_store::make(*engine_, kv, eviction::lru) : engine_->shared_kv(kv);
  if (!store) return std::unexpected(std::move(store.error()));
  store_ = std::move(*store);
  // The first session shared the budget out between states and blocks, by the context that it has.
  if (limits_.n_blocks > store_->n_blocks())
    return fail(BITNET_OUT_OF_MEMORY,
                fmt::format("the sessions that share the KV budget of {} bytes have room for {} "
                            "tokens beside their states, this one asks for {}; open the one with "
                            "the largest n_context first, or use a larger kv_budget_bytes",
                            budget, uint64_t{store_->n_blocks()} * block_tokens,
                            uint64_t{limits_.n_blocks} * block_tokens));
  kv_.table.reserve(blocks_for(limits_.n_context));
  store_->join(kv_);
  return {};
}

result<void> seat::build(const session_options& options, std::size_t index) {
  const part& on = *engine_->parts()[index];
  place& at = places_.emplace_back(place{.on = &on});
  const program_bounds bounds(options, limits_);
  const program::graph described =
      on.graph(limits_.n_context, embeddings_ ? program::ending::hidden : program::ending::logits);
  bitnet_weights* const weights = on.weights();
  auto program = told(compute::program::build(on.device(), described, {&weights, 1}, bounds.get()),
                      "compiling the model");
  if (!program) return std::unexpected(std::move(program.error()));
  at.program = std::move(*program);
  auto bound = told(compute::binding::make(on.device(), at.program, described, bounds.get(),
                                           store_->of_part(index).made.get()),
                    "making the memory of steps");
  if (!bound) return std::unexpected(std::move(bound.error()));
  at.binding = std::move(*bound);
  // The step that is run most: what a plugin compiles for it is not the first token's to wait for.
  if (auto ready =
          told(at.binding.prepare(1, on.what().head ? 1 : 0), "preparing the step of one token");
      !ready)
    return ready;
  const auto ints = [&](uint32_t role) { return at.binding.of<int32_t>(role); };
  const auto floats = [&](uint32_t role) { return at.binding.of<float>(role); };
  float* const hidden = floats(BITNET_PORT_VALUE_OUT);
  at.memory = {ints(BITNET_PORT_TOKENS),
               ints(BITNET_PORT_POSITIONS),
               ints(BITNET_PORT_SEQUENCES),
               ints(BITNET_PORT_SLOTS),
               ints(BITNET_PORT_BLOCK_TABLES),
               ints(BITNET_PORT_OUTPUT_ROWS),
               ints(BITNET_PORT_STATES),
               floats(BITNET_PORT_VALUE_IN),
               hidden != nullptr ? hidden : floats(BITNET_PORT_LOGITS),
               at.binding.of<bitnet_largest>(BITNET_PORT_LARGEST)};
  auto queue = told(compute::queue::make(on.device()), "making a queue");
  if (!queue) return std::unexpected(std::move(queue.error()));
  at.queue = std::move(*queue);
  return {};
}

// Waits for the step that was submitted last, for as long as a step may take.
template <class Doing>
result<void> seat::await(place& at, const Doing& doing) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  auto waited = at.queue.wait(step_timeout_ns_);
  if (waited || waited.error().status != BITNET_TIMEOUT) {
    if (waited) return {};
    return told(std::move(waited), doing());
  }
  hung_ = true;
  const auto took = std::chrono::duration<double>(clock::now() - begin).count();
  return fail(BITNET_TIMEOUT,
              fmt::format("{}: it has not ended after {:.1f} s; the device or its driver hangs. "
                          "Choose another device; a step may take longer with a larger "
                          "BITNET_STEP_TIMEOUT",
                          doing(), took));
}

// The facts of a step that the part reads.
void seat::note_facts(const place& at, const stride& s) const {
  const auto& m = at.memory;
  const uint32_t n = s.n();
  if (m.tokens != nullptr) std::ranges::copy(s.ids, m.tokens);
  if (m.positions != nullptr)
    for (uint32_t i = 0; i < n; ++i) m.positions[i] = static_cast<int32_t>(s.first + i);
  if (m.sequences != nullptr) std::fill_n(m.sequences, n, 0);
  if (m.slots != nullptr)
    for (uint32_t i = 0; i < n; ++i) {
      const auto position = static_cast<uint32_t>(s.first + i);
      m.slots[i] = static_cast<int32_t>(kv_.table[position / block_tokens] * block_tokens +
                                        position % block_tokens);
    }
  if (m.block_tables != nullptr)
    for (std::size_t i = 0; i < kv_.table.size(); ++i)
      m.block_tables[i] = static_cast<int32_t>(kv_.table[i]);
  if (m.states != nullptr) m.states[0] = static_cast<int32_t>(kv_.state);
  if (m.output_rows != nullptr)
    for (uint32_t i = 0; i < s.n_outputs(); ++i)
      m.output_rows[i] = static_cast<int32_t>(s.first_output + i);
}

result<void> seat::step(uint64_t first, std::span<const int32_t> ids, uint32_t first_output,
                        const wanted& out) {
  const stride s{first, ids, first_output};
  if (out.largest != nullptr) {
    out.largest->ids.clear();
    out.largest->logits.clear();
  }
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (auto ok = run(i, s, out); !ok) {
      engine_->blame(i);
      return ok;
    }
  return {};
}

// Whether the row was listed, after the step.
result<bool> seat::take_listed(const place& at, const wanted& out) const {
  const bitnet_largest& row = *at.memory.largest;
  if (row.count > BITNET_MOST_LARGEST) return false;
  auto sane =
      compute::sane("queue_wait", bitnet_wrong_largest(&row, out.top_logits, limits_.row_floats));
  if (!sane) {
    auto why = told(std::move(sane),
                    fmt::format("backend {}: taking the largest logits", at.on->backend_name()));
    return std::unexpected(std::move(why.error()));
  }
  out.largest->ids.assign(row.ids, row.ids + row.count);
  out.largest->logits.assign(row.logits, row.logits + row.count);
  return true;
}

// The step on one part. All rows go from part to part, those that are asked for leave the last.
result<void> seat::run(std::size_t index, const stride& given, const wanted& out) {
  place& at = places_[index];
  const bool is_last = index + 1 == places_.size();
  note_facts(at, given);
  bitnet_step s{};
  s.struct_size = sizeof s;
  s.n_tokens = given.n();
  s.n_sequences = 1;
  s.n_outputs = is_last ? given.n_outputs() : 0;
  s.binding = at.binding.get();
  s.cancel_token = cancel_token_;
  s.top_logits = is_last ? out.top_logits : 0;
  s.window = limits_.window;
  s.window_keep = limits_.window_keep;
  const uint64_t n_floats = is_last ? s.n_outputs * limits_.row_floats
                                    : uint64_t{s.n_tokens} * engine_->model().shape().n_embedding;
  const uint64_t last = n_floats - 1;  // not looked at without rows
  constexpr auto unwritten = std::bit_cast<float>(uint32_t{BITNET_UNWRITTEN_LOGIT_BITS});
  if (n_floats != 0) at.memory.out[0] = at.memory.out[last] = unwritten;
  const bool may_list = at.memory.largest != nullptr && s.n_outputs != 0 && s.top_logits != 0;
  if (may_list) at.memory.largest->count = BITNET_NONE;
  const auto doing = [&] {  // only if it fails: a step that works allocates nothing
    return fmt::format("backend {}: computing a step of {} tokens", at.on->backend_name(),
                       s.n_tokens);
  };
  const plugin::kept_thread kept(*at.on->choice().backend->complaints());
  if (auto ok = at.queue.submit(s); !ok) return told(std::move(ok), doing());
  if (auto ok = await(at, doing); !ok) return ok;
  if (may_list) {
    auto listed = take_listed(at, out);
    if (!listed) return std::unexpected(std::move(listed.error()));
    if (*listed) return {};
  }
  const auto is_unwritten = [&](uint64_t i) {
    return std::bit_cast<uint32_t>(at.memory.out[i]) == BITNET_UNWRITTEN_LOGIT_BITS;
  };
  if (n_floats != 0 && (is_unwritten(0) || is_unwritten(last)))
    return told(
        compute::sane("queue_wait", embeddings_ || !is_last ? "succeeds and writes no hidden states"
                                                            : "succeeds and writes no logits"),
        doing());
  std::copy_n(at.memory.out, n_floats, is_last ? out.rows.data() : places_[index + 1].memory.in);
  return {};
}

result<std::vector<bitnet_kernel_stat>> seat::ran() const {
  std::vector<bitnet_kernel_stat> all;
  for (const place& p : places_) {
    auto stats = told(p.program.stats(), "asking what ran");
    if (!stats) return pass_on(std::move(stats), fmt::format("backend {}", p.on->backend_name()));
    all.insert(all.end(), stats->begin(), stats->end());
  }
  return all;
}

std::vector<uint32_t> seat::held_blocks() const {
  std::vector<uint32_t> out;
  std::ranges::copy_if(kv_.table, std::back_inserter(out),
                       [](uint32_t b) { return b != no_block; });
  return out;
}

// The copy is done before the step that comes next.
result<void> seat::copy_state(uint32_t from, uint32_t to, const char* doing) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const kv_store::pool& pool = store_->of_part(i);
    if (!pool.has_states()) continue;
    const part& on = *places_[i].on;
    const plugin::kept_thread kept(*on.choice().backend->complaints());
    const uint32_t there = pool.as_block(from), here = pool.as_block(to);
    if (auto ok = told(places_[i].queue.copy(pool.made.get(), {&there, 1}, {&here, 1}),
                       fmt::format("backend {}: {}", on.backend_name(), doing));
        !ok)
      return ok;
  }
  return {};
}

result<void> seat::keep_state() {
  return copy_state(kv_.state, kv_.kept_state, "keeping a state");
}

result<void> seat::restore_state() {
  return copy_state(kv_.kept_state, kv_.state, "going back to a state");
}

// Calls pass(place, pool, blocks, offset, bytes) for each part that has some of it: `blocks` as its
// pool names them, and where its `bytes` of each lie in those of a whole model.
template <class Pass>
result<void> seat::for_pools(std::span<const uint32_t> which, cargo what, const Pass& pass) {
  uint64_t offset = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const kv_store::pool& pool = store_->of_part(i);
    const uint64_t bytes = what == cargo::keys ? pool.block_bytes()
                           : pool.has_states() ? state_bytes(pool.config)
                                               : 0;
    if (bytes == 0) continue;
    std::vector<uint32_t> named(which.begin(), which.end());
    if (what == cargo::states)
      for (uint32_t& state : named) state = pool.as_block(state);
    if (auto ok = pass(places_[i], pool, named, offset, bytes); !ok) return ok;
    offset += bytes;
  }
  return {};
}

result<void> seat::write_out(std::span<const uint32_t> which, cargo what,
                             std::span<std::byte> bytes) {
  const uint64_t whole = bytes.size() / which.size();
  std::vector<std::byte> piece;
  return for_pools(
      which, what,
      [&](place& at, const kv_store::pool& pool, std::span<const uint32_t> named, uint64_t offset,
          uint64_t each) -> result<void> {
        const auto doing = [&] {
          return fmt::format("backend {}: writing KV out", at.on->backend_name());
        };
        if (each != whole) piece.resize(each * named.size());
        const std::span<std::byte> to = each == whole ? bytes : std::span(piece);
        if (auto ok = told(at.queue.write_out(pool.made.get(), named, to), doing()); !ok) return ok;
        if (auto ok = await(at, doing); !ok || each == whole) return ok;
        for (std::size_t i = 0; i < named.size(); ++i)
          std::memcpy(bytes.data() + i * whole + offset, piece.data() + i * each, each);
        return {};
      });
}

result<void> seat::read_in(std::span<const uint32_t> which, cargo what,
                           std::span<const std::byte> bytes) {
  const uint64_t whole = bytes.size() / which.size();
  std::vector<std::byte> piece;
  return for_pools(
      which, what,
      [&](place& at, const kv_store::pool& pool, std::span<const uint32_t> named, uint64_t offset,
          uint64_t each) -> result<void> {
        const auto doing = [&] {
          return fmt::format("backend {}: reading KV in", at.on->backend_name());
        };
        if (each != whole) piece.resize(each * named.size());
        for (std::size_t i = 0; each != whole && i < named.size(); ++i)
          std::memcpy(piece.data() + i * each, bytes.data() + i * whole + offset, each);
        const std::span<const std::byte> from = each == whole ? bytes : std::span(piece);
        if (auto ok = told(at.queue.read_in(pool.made.get(), named, from), doing()); !ok) return ok;
        return await(at, doing);
      });
}

result<void> seat::copy_blocks(seat& from) {
  if (!kv_.spare.resize_like(kv_.table, from.kv_.table))
    return fail(BITNET_OUT_OF_MEMORY, "fewer KV blocks than the session has");
  constexpr uint64_t room = 16U << 20;  // bytes on the way at a time
  const std::vector<uint32_t> theirs = from.held_blocks(), mine = held_blocks();
  const std::size_t together =
      std::clamp<std::size_t>(room / limits_.block_bytes, 1, std::max<std::size_t>(1, mine.size()));
  std::vector<std::byte> memory(together * limits_.block_bytes);
  for (std::size_t first = 0; first < mine.size(); first += together) {
    const std::size_t n = std::min(together, mine.size() - first);
    const auto bytes = std::span(memory).first(n * limits_.block_bytes);
    if (auto ok = from.write_out(std::span(theirs).subspan(first, n), cargo::keys, bytes); !ok)
      return ok;
    if (auto ok = read_in(std::span(mine).subspan(first, n), cargo::keys, bytes); !ok) return ok;
  }
  if (kv_.state == no_block || from.kv_.state == no_block) return {};
  memory.resize(state_bytes(store_->config()));
  if (auto ok = from.write_out({&from.kv_.state, 1}, cargo::states, memory); !ok) return ok;
  return read_in({&kv_.state, 1}, cargo::states, memory);
}

}  // namespace bitnet::session
