#include "session/seat.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <limits>
#include <utility>

#include "base/environment.hpp"
#include "compute/kv_types.hpp"
#include "model/context_room.hpp"
#include "plugin/loading/kept_state.hpp"

namespace bitnet::session {
namespace {

using model::largest_context;

// Host memory that the rows of one step may take; a larger step is cut.
constexpr uint64_t rows_budget_bytes = 64U << 20;
constexpr uint32_t largest_batch = 1U << 16;

// Whether the device keeps keys or values of this model as `dtype`.
result<void> check_kv_type(const select::choice& choice, const model::hyperparameters& shape,
                           uint32_t dtype, const char* what, const char* option) {
  const compute::kv_type* type = compute::find_kv_type(dtype);
  if (type == nullptr)
    return fail(BITNET_INVALID_ARGUMENT, fmt::format("there is no KV type {}", dtype));
  const std::string advice = fmt::format("; use {} f16", option);
  if (compute::kv_head_bytes(*type, shape.head_dim) == 0)
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format(
            "{} of type {} need heads of a multiple of {} elements, and this model's have {}{}",
            what, type->name, type->block, shape.head_dim, advice));
  if (compute::has_kv_type(choice.device, dtype)) return {};
  std::string known;
  for (const std::string& name : compute::kv_type_names(choice.device))
    known += (known.empty() ? "" : ", ") + name;
  return fail(BITNET_UNSUPPORTED,
              fmt::format("{} keeps {} as {}, not as {}{}, or request another device",
                          choice.device_name(), what, known, type->name, advice));
}

uint64_t kv_head_bytes(uint32_t dtype, uint64_t head_dim) {
  return compute::kv_head_bytes(*compute::find_kv_type(dtype), head_dim);
}

uint32_t affordable_blocks(uint64_t budget, uint64_t block_bytes) {
  if (budget == 0) return blocks_for(largest_context);
  return static_cast<uint32_t>(std::min<uint64_t>(budget / block_bytes, 1U << 24));
}

// The sequence's state and a copy of an earlier one.
constexpr uint32_t states_of_session = 2;

uint64_t state_bytes(const bitnet_kv_config& kv) {
  return uint64_t{kv.state_elements} * sizeof(float);
}

// Blocks that a sequence holds at a time.
uint32_t blocks_in_use(const seat::limits& l) {
  const uint32_t all = blocks_for(l.n_context);
  if (l.window == 0) return all;
  const uint64_t span = uint64_t{l.window} - 1 + l.n_batch;  // that a step sees or writes
  const uint64_t touched = (span + block_tokens - 2) / block_tokens + 1;  // wherever it begins
  return static_cast<uint32_t>(std::min<uint64_t>(all, blocks_for(l.window_keep) + touched));
}

// Tokens of the context and of a step. `trained` is the model's context, `affordable` blocks are
// what a budget has room for.
void choose_context(seat::limits& l, const session_options& options, uint32_t trained,
                    uint64_t affordable) {
  const bool windowed = options.window != 0;
  l.n_context = options.n_context != 0 ? options.n_context
                : windowed             ? trained
                                       : std::min(trained, default_context);
  if (options.n_context == 0 && !windowed && affordable != 0)
    l.n_context = static_cast<uint32_t>(std::min<uint64_t>(l.n_context, affordable * block_tokens));
  l.n_batch = std::min(options.n_batch == 0 ? 512 : options.n_batch, l.n_context);
}

// A window that the context does not fit into, if the device's attention has such.
result<void> choose_window(seat::limits& l, const session_options& options,
                           uint32_t attention_flags) {
  if (options.window == 0 && options.window_keep != 0)
    return fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("window_keep {} says what stays in view beside a window; set window too",
                    options.window_keep));
  if (options.window == 0) return {};
  if ((attention_flags & BITNET_ATTENTION_WINDOW) == 0)
    return fail(BITNET_UNSUPPORTED, "this device's attention has no window; leave window 0");
  if (options.window >= l.n_context) return {};
  l.window = options.window;
  l.window_keep = options.window_keep;
  // A step needs room for its own tokens beside the window of its first.
  l.n_batch = std::min(l.n_batch, blocks_for(l.window) * block_tokens);
  return {};
}

result<void> check_extent(const seat::limits& l) {
  if (l.n_context == 0 || l.n_context > largest_context)
    return fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("a context of {} tokens is not between 1 and {}; choose another n_context",
                    l.n_context, largest_context));
  if (l.n_batch > largest_batch)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("a batch of {} tokens is more than {}; choose another n_batch",
                            l.n_batch, largest_batch));
  return {};
}

}  // namespace

seat::seat(std::shared_ptr<engine> e, uint64_t cancel_token)
    : engine_(std::move(e)),
      cancel_token_(cancel_token),
      step_timeout_ns_(environment::step_timeout_ns()) {}

result<std::unique_ptr<seat>> seat::open(std::shared_ptr<engine> e, const session_options& options,
                                         uint64_t cancel_token) {
  std::unique_ptr<seat> s(new seat(std::move(e), cancel_token));
  auto built = [&] {
    const std::lock_guard turn(s->engine_->device_turn());
    const plugin::kept_process kept(s->engine_->choice().backend->complaints());
    auto measured = s->measure(options);
    return measured ? s->build(options) : measured;
  }();
  if (!built)
    return pass_on(std::move(built), fmt::format("backend {}", s->engine_->backend_name()));
  return s;
}

seat::~seat() {
  const std::lock_guard turn(engine_->device_turn());
  if (hung_) {
    leave_behind();
    return;
  }
  const plugin::kept_thread kept(*engine_->choice().backend->complaints());
  queue_ = {};
  binding_ = {};
  program_ = {};
  if (store_) store_->leave(kv_);
  store_.reset();
}

// A step that never ended may still write to all that it was given.
void seat::leave_behind() {
  struct left {
    std::shared_ptr<engine> on;
    std::shared_ptr<kv_store> store;
    compute::program program;
    compute::binding binding;
    compute::queue queue;
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
  all.push_back(new left{engine_, std::move(store_), std::move(program_), std::move(binding_),
                         std::move(queue_)});
}

uint64_t seat::kv_bytes() const {
  const bitnet_kv_config& all = store_->config();
  return limits_.block_bytes * all.n_blocks + uint64_t{all.n_states} * state_bytes(all);
}

// What this engine can give to a session of these options.
result<void> seat::measure(const session_options& options) {
  const model::hyperparameters& shape = engine_->model().shape();
  if (auto ok = check_kv_type(engine_->choice(), shape, options.dtype_k, "keys", "kv_k"); !ok)
    return ok;
  if (auto ok = check_kv_type(engine_->choice(), shape, options.dtype_v, "values", "kv_v"); !ok)
    return ok;
  limits_.states_bytes = states_of_session * shape.state_elements() * sizeof(float);
  limits_.block_bytes = uint64_t{block_tokens} * shape.n_attending() * shape.n_kv_heads *
                        (kv_head_bytes(options.dtype_k, shape.head_dim) +
                         kv_head_bytes(options.dtype_v, shape.head_dim));
  const uint64_t budget = options.own_kv ? 0 : engine_->budget().bytes;
  if (budget != 0 && limits_.states_bytes >= budget)
    return fail(BITNET_OUT_OF_MEMORY,
                fmt::format("the states of a session take {} bytes, which leaves nothing of the KV "
                            "budget of {}; use a larger kv_budget_bytes",
                            limits_.states_bytes, budget));
  const uint64_t affordable =
      affordable_blocks(budget == 0 ? 0 : budget - limits_.states_bytes, limits_.block_bytes);

  choose_context(limits_, options, shape.n_context, affordable);
  if (auto ok = choose_window(limits_, options, engine_->choice().device.attention_flags); !ok)
    return ok;
  if (auto ok = check_extent(limits_); !ok) return ok;
  embeddings_ = options.embeddings;
  limits_.row_floats = options.embeddings ? shape.n_embedding : shape.n_vocab;
  const uint64_t row_bytes = limits_.row_floats * sizeof(float);
  limits_.max_outputs = static_cast<uint32_t>(
      std::clamp<uint64_t>(rows_budget_bytes / row_bytes, 1, limits_.n_batch));
  limits_.n_blocks = blocks_in_use(limits_);
  if (limits_.n_blocks > affordable)
    return fail(
        BITNET_OUT_OF_MEMORY,
        fmt::format(
            "keys and values of {} tokens take {} bytes, more than the KV budget of {}; use a "
            "smaller n_context, q8_0 or q4_0 as kv_k and kv_v, set window, or use a larger "
            "kv_budget_bytes",
            uint64_t{limits_.n_blocks} * block_tokens, limits_.n_blocks * limits_.block_bytes,
            budget));
  return {};
}

result<void> seat::build(const session_options& options) {
  if (auto ok = take_store(options); !ok) return ok;
  if (auto ok = build_program(options); !ok) return ok;
  auto queue = told(compute::queue::make(engine_->device()), "making a queue");
  if (!queue) return std::unexpected(std::move(queue.error()));
  queue_ = std::move(*queue);
  return {};
}

result<void> seat::take_store(const session_options& options) {
  const model::hyperparameters& shape = engine_->model().shape();
  const uint64_t budget = options.own_kv ? 0 : engine_->budget().bytes;
  bitnet_kv_config kv{};
  kv.struct_size = sizeof kv;
  kv.dtype_k = options.dtype_k;
  kv.dtype_v = options.dtype_v;
  kv.n_layers = shape.n_attending();
  kv.n_kv_heads = shape.n_kv_heads;
  kv.head_dim_k = kv.head_dim_v = shape.head_dim;
  kv.block_tokens = block_tokens;
  // Of a budget as many sessions have states as could all be at the end of their context.
  const uint64_t session_bytes = limits_.states_bytes + limits_.n_blocks * limits_.block_bytes;
  const uint64_t sessions = budget == 0 ? 1 : std::max<uint64_t>(1, budget / session_bytes);
  const uint64_t for_states = sessions * limits_.states_bytes;
  if (for_states != 0) {
    kv.state_elements = static_cast<uint32_t>(shape.state_elements());
    kv.n_states = static_cast<uint32_t>(sessions * states_of_session);
  }
  kv.n_blocks =
      budget == 0 ? limits_.n_blocks : affordable_blocks(budget - for_states, limits_.block_bytes);
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

result<void> seat::build_program(const session_options& options) {
  bitnet_program_options program_options{};
  program_options.struct_size = sizeof program_options;
  if (options.deterministic) program_options.flags |= BITNET_PROGRAM_DETERMINISTIC;
  if (options.profile) program_options.flags |= BITNET_PROGRAM_PROFILE;
  program_options.max_tokens = limits_.n_batch;
  program_options.max_sequences = 1;
  program_options.max_outputs = limits_.max_outputs;
  program_options.max_blocks = blocks_for(limits_.n_context);
  program_options.block_tokens = block_tokens;
  const uint32_t buckets[] = {1, limits_.n_batch};
  program_options.n_buckets = limits_.n_batch == 1 ? 1 : 2;
  program_options.buckets = buckets;
  const program::graph described =
      program::describe(engine_->model(), limits_.n_context,
                        embeddings_ ? program::ending::hidden : program::ending::logits);
  bitnet_weights* const weights = engine_->weights();
  auto program =
      told(compute::program::build(engine_->device(), described, {&weights, 1}, program_options),
           "compiling the model");
  if (!program) return std::unexpected(std::move(program.error()));
  program_ = std::move(*program);
  auto bound = told(compute::binding::make(engine_->device(), program_, described, program_options,
                                           store_->pool()),
                    "making the memory of steps");
  if (!bound) return std::unexpected(std::move(bound.error()));
  binding_ = std::move(*bound);
  // The step that is run most: what a plugin compiles for it is not the first token's to wait for.
  if (auto ready = told(binding_.prepare(1, 1), "preparing the step of one token"); !ready)
    return std::unexpected(std::move(ready.error()));
  const auto ints = [&](uint32_t role) { return binding_.of<int32_t>(role); };
  memory_ = {ints(BITNET_PORT_TOKENS),
             ints(BITNET_PORT_POSITIONS),
             ints(BITNET_PORT_SEQUENCES),
             ints(BITNET_PORT_SLOTS),
             ints(BITNET_PORT_BLOCK_TABLES),
             ints(BITNET_PORT_OUTPUT_ROWS),
             ints(BITNET_PORT_STATES),
             binding_.of<float>(embeddings_ ? BITNET_PORT_VALUE_OUT : BITNET_PORT_LOGITS)};
  return {};
}

// Waits for the step that was submitted last, for as long as a step may take.
template <class Doing>
result<void> seat::await(const Doing& doing) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  auto waited = queue_.wait(step_timeout_ns_);
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

// Tokens [first, first + ids.size()) of the sequence.
result<void> seat::step(uint64_t first, std::span<const int32_t> ids, uint32_t first_output,
                        uint32_t top_logits, std::span<float> rows) {
  const auto n = static_cast<uint32_t>(ids.size());
  const uint32_t n_outputs = n - first_output;
  for (uint32_t i = 0; i < n; ++i) {
    const auto position = static_cast<uint32_t>(first + i);
    memory_.tokens[i] = ids[i];
    memory_.positions[i] = static_cast<int32_t>(position);
    memory_.sequences[i] = 0;
    memory_.slots[i] = static_cast<int32_t>(kv_.table[position / block_tokens] * block_tokens +
                                            position % block_tokens);
  }
  for (std::size_t i = 0; i < kv_.table.size(); ++i)
    memory_.block_tables[i] = static_cast<int32_t>(kv_.table[i]);
  if (memory_.states != nullptr) memory_.states[0] = static_cast<int32_t>(kv_.state);
  for (uint32_t i = 0; i < n_outputs; ++i)
    memory_.output_rows[i] = static_cast<int32_t>(first_output + i);

  bitnet_step s{};
  s.struct_size = sizeof s;
  s.n_tokens = n;
  s.n_sequences = 1;
  s.n_outputs = n_outputs;
  s.binding = binding_.get();
  s.cancel_token = cancel_token_;
  s.top_logits = top_logits;
  s.window = limits_.window;
  s.window_keep = limits_.window_keep;
  const uint64_t n_floats = n_outputs * limits_.row_floats;
  const uint64_t last = n_floats - 1;  // not looked at without outputs
  constexpr auto unwritten = std::bit_cast<float>(uint32_t{BITNET_UNWRITTEN_LOGIT_BITS});
  if (n_outputs != 0) memory_.rows[0] = memory_.rows[last] = unwritten;
  const auto doing = [&] {  // only if it fails: a step that works allocates nothing
    return fmt::format("backend {}: computing a step of {} tokens", engine_->backend_name(), n);
  };
  const plugin::kept_thread kept(*engine_->choice().backend->complaints());
  if (auto ok = queue_.submit(s); !ok) return told(std::move(ok), doing());
  if (auto ok = await(doing); !ok) return ok;
  const auto is_unwritten = [&](uint64_t i) {
    return std::bit_cast<uint32_t>(memory_.rows[i]) == BITNET_UNWRITTEN_LOGIT_BITS;
  };
  if (n_outputs != 0 && (is_unwritten(0) || is_unwritten(last)))
    return told(compute::sane("queue_wait", embeddings_ ? "succeeds and writes no hidden states"
                                                        : "succeeds and writes no logits"),
                doing());
  std::copy_n(memory_.rows, n_floats, rows.begin());
  return {};
}

result<std::vector<bitnet_kernel_stat>> seat::ran() const {
  auto stats = told(program_.stats(), "asking what ran");
  if (!stats) return pass_on(std::move(stats), fmt::format("backend {}", engine_->backend_name()));
  return stats;
}

std::vector<uint32_t> seat::held_blocks() const {
  std::vector<uint32_t> out;
  std::ranges::copy_if(kv_.table, std::back_inserter(out),
                       [](uint32_t b) { return b != no_block; });
  return out;
}

// The copy is done before the step that comes next.
result<void> seat::copy_state(uint32_t from, uint32_t to, const char* doing) {
  const plugin::kept_thread kept(*engine_->choice().backend->complaints());
  const uint32_t there = store_->as_block(from), here = store_->as_block(to);
  return told(queue_.copy(store_->pool(), {&there, 1}, {&here, 1}),
              fmt::format("backend {}: {}", engine_->backend_name(), doing));
}

result<void> seat::keep_state() {
  return copy_state(kv_.state, kv_.kept_state, "keeping a state");
}

result<void> seat::restore_state() {
  return copy_state(kv_.kept_state, kv_.state, "going back to a state");
}

// Blocks, or states, of `from` into those of this one; `bytes` are what they take.
result<void> seat::pass(seat& from, std::span<const uint32_t> theirs,
                        std::span<const uint32_t> mine, std::span<std::byte> bytes) {
  const auto out = [&] {
    return fmt::format("backend {}: writing KV out", from.engine_->backend_name());
  };
  const auto in = [&] { return fmt::format("backend {}: reading KV in", engine_->backend_name()); };
  if (auto ok = told(from.queue_.write_out(from.store_->pool(), theirs, bytes), out()); !ok)
    return ok;
  if (auto ok = from.await(out); !ok) return ok;
  if (auto ok = told(queue_.read_in(store_->pool(), mine, bytes), in()); !ok) return ok;
  return await(in);
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
    if (auto ok = pass(from, std::span(theirs).subspan(first, n), std::span(mine).subspan(first, n),
                       std::span(memory).first(n * limits_.block_bytes));
        !ok)
      return ok;
  }
  if (kv_.state == no_block || from.kv_.state == no_block) return {};
  memory.resize(state_bytes(store_->config()));
  const uint32_t there = from.store_->as_block(from.kv_.state), here = store_->as_block(kv_.state);
  return pass(from, {&there, 1}, {&here, 1}, memory);
}

}  // namespace bitnet::session
