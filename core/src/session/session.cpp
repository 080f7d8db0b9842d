#include "session/session.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "plugin/kv_types.hpp"

namespace bitnet::session {
namespace {

// Host memory that the logits of one step may take; a larger step is cut.
constexpr uint64_t logits_budget_bytes = 64U << 20;
constexpr uint32_t largest_context = 1U << 20;
constexpr uint32_t largest_batch = 1U << 16;

// Whether the device keeps keys or values of this model as `dtype`.
result<void> check_kv_type(const select::choice& choice, const model::hyperparameters& shape,
                           uint32_t dtype, const char* what, const char* option) {
  const plugin::kv_type* type = plugin::find_kv_type(dtype);
  if (type == nullptr)
    return fail(BITNET_INVALID_ARGUMENT, "there is no KV type " + std::to_string(dtype));
  const std::string advice = std::string("; use ") + option + " f16";
  if (plugin::kv_head_bytes(*type, shape.head_dim) == 0)
    return fail(BITNET_UNSUPPORTED,
                std::string(what) + " of type " + type->name + " need heads of a multiple of " +
                    std::to_string(type->block) + " elements, and this model's have " +
                    std::to_string(shape.head_dim) + advice);
  if (plugin::has_kv_type(choice.device, dtype)) return {};
  std::string known;
  for (const std::string& name : plugin::kv_type_names(choice.device))
    known += (known.empty() ? "" : ", ") + name;
  return fail(BITNET_UNSUPPORTED, std::string("this device keeps ") + what + " as " + known +
                                      ", not as " + type->name + advice);
}

uint64_t kv_head_bytes(uint32_t dtype, uint64_t head_dim) {
  return plugin::kv_head_bytes(*plugin::find_kv_type(dtype), head_dim);
}

}  // namespace

session::session(engine& e, const session_options& options, uint64_t cancel_token)
    : engine_(e),
      cancel_token_(cancel_token),
      n_vocab_(e.model().shape().n_vocab),
      dtype_k_(options.dtype_k),
      dtype_v_(options.dtype_v),
      cancelled_(options.cancelled),
      program_(nullptr, e.table().program_destroy),
      queue_(nullptr, e.table().queue_destroy) {}

result<std::unique_ptr<session>> session::open(engine& e, const session_options& options,
                                               uint64_t cancel_token) {
  std::unique_ptr<session> s(new session(e, options, cancel_token));
  auto built = [&] {
    const std::lock_guard turn(e.device_turn());
    return s->build(options);
  }();
  if (!built) return pass_on(std::move(built), "backend " + e.backend_name());
  return s;
}

session::~session() {
  const std::lock_guard turn(engine_.device_turn());
  queue_.reset();
  program_.reset();
  if (store_) store_->leave(kv_);
  store_.reset();
  buffers_.clear();
}

result<void> session::build(const session_options& options) {
  const model::hyperparameters& shape = engine_.model().shape();
  low_memory_ = options.low_memory;
  if (auto ok = check_kv_type(engine_.choice(), shape, dtype_k_, "keys", "--cache-type-k"); !ok)
    return ok;
  if (auto ok = check_kv_type(engine_.choice(), shape, dtype_v_, "values", "--cache-type-v"); !ok)
    return ok;
  const uint64_t block_bytes =
      uint64_t{block_tokens} * shape.n_layers * shape.n_kv_heads *
      (kv_head_bytes(dtype_k_, shape.head_dim) + kv_head_bytes(dtype_v_, shape.head_dim));
  const uint64_t budget = engine_.budget().bytes;
  const uint64_t affordable = budget == 0 ? blocks_for(largest_context)
                                          : std::min<uint64_t>(budget / block_bytes, 1U << 24);

  const bool windowed = options.window != 0;
  n_context_ = options.n_context != 0 ? options.n_context
               : windowed             ? shape.n_context
                                      : std::min(shape.n_context, default_context);
  if (options.n_context == 0 && !windowed && affordable != 0)
    n_context_ = static_cast<uint32_t>(std::min<uint64_t>(n_context_, affordable * block_tokens));
  n_batch_ = std::min(options.n_batch == 0 ? 512 : options.n_batch, n_context_);
  if (!windowed && options.window_keep != 0)
    return fail(BITNET_INVALID_ARGUMENT, "--keep " + std::to_string(options.window_keep) +
                                             " says what stays in view beside a window; give "
                                             "--sliding-window too");
  if (windowed && (engine_.choice().device.attention_flags & BITNET_ATTENTION_WINDOW) == 0)
    return fail(BITNET_UNSUPPORTED,
                "this device's attention has no window; leave --sliding-window out");
  if (windowed && options.window < n_context_) {
    window_ = options.window;
    window_keep_ = options.window_keep;
    // A step needs room for its own tokens beside the window of its first.
    n_batch_ = std::min(n_batch_, blocks_for(window_) * block_tokens);
  }
  if (n_context_ == 0 || n_context_ > largest_context)
    return fail(BITNET_INVALID_ARGUMENT,
                "a context of " + std::to_string(n_context_) + " tokens is not between 1 and " +
                    std::to_string(largest_context) + "; choose another with --ctx-size");
  if (n_batch_ > largest_batch)
    return fail(BITNET_INVALID_ARGUMENT,
                "a batch of " + std::to_string(n_batch_) + " tokens is more than " +
                    std::to_string(largest_batch) + "; choose another with --batch-size");
  const uint64_t row_bytes = uint64_t{n_vocab_} * sizeof(float);
  max_outputs_ =
      static_cast<uint32_t>(std::clamp<uint64_t>(logits_budget_bytes / row_bytes, 1, n_batch_));
  const uint32_t table_blocks = blocks_for(n_context_);
  n_blocks_ = table_blocks;
  if (window_ != 0) {
    const uint64_t span = uint64_t{window_} - 1 + n_batch_;  // that a step sees or writes
    const uint64_t touched = (span + block_tokens - 2) / block_tokens + 1;  // wherever it begins
    n_blocks_ =
        static_cast<uint32_t>(std::min<uint64_t>(n_blocks_, blocks_for(window_keep_) + touched));
  }
  if (n_blocks_ > affordable)
    return fail(
        BITNET_OUT_OF_MEMORY,
        "keys and values of " + std::to_string(uint64_t{n_blocks_} * block_tokens) +
            " tokens take " + std::to_string(n_blocks_ * block_bytes) +
            " bytes, more than the KV budget of " + std::to_string(budget) +
            "; use a smaller --ctx-size, --cache-type-k and -v q8_0, --sliding-window, or a "
            "larger --kv-budget");
  tokens_.reserve(n_context_);

  bitnet_error err = blank_error();
  bitnet_kv_config kv{};
  kv.struct_size = sizeof kv;
  kv.dtype_k = dtype_k_;
  kv.dtype_v = dtype_v_;
  kv.n_layers = shape.n_layers;
  kv.n_kv_heads = shape.n_kv_heads;
  kv.head_dim = shape.head_dim;
  kv.block_tokens = block_tokens;
  kv.n_blocks = budget == 0 ? n_blocks_ : static_cast<uint32_t>(affordable);
  auto store = budget == 0 ? kv_store::make(engine_, kv, eviction::lru) : engine_.shared_kv(kv);
  if (!store) return std::unexpected(std::move(store.error()));
  store_ = std::move(*store);
  kv_.table.reserve(table_blocks);
  store_->join(kv_);
  kv_bytes_ = block_bytes * store_->n_blocks();

  bitnet_program_options program_options{};
  program_options.struct_size = sizeof program_options;
  if (options.deterministic) program_options.flags |= BITNET_PROGRAM_DETERMINISTIC;
  if (options.profile) program_options.flags |= BITNET_PROGRAM_PROFILE;
  program_options.max_tokens = n_batch_;
  program_options.max_sequences = 1;
  program_options.max_outputs = max_outputs_;
  program_options.max_blocks = table_blocks;
  program_options.block_tokens = block_tokens;
  const uint32_t buckets[] = {1, n_batch_};
  program_options.n_buckets = n_batch_ == 1 ? 1 : 2;
  program_options.buckets = buckets;
  const bitnet_graph graph = engine_.graph().view();
  bitnet_program* program = nullptr;
  if (auto ok = check(engine_.table().program_build(engine_.device(), &graph, engine_.weights(),
                                                    &program_options, &program, &err),
                      err, "compiling the model");
      !ok)
    return ok;
  program_.reset(program);

  bitnet_step_buffers bound{};
  bound.struct_size = sizeof bound;
  const auto ints = [](uint64_t n) { return n * sizeof(int32_t); };
  struct {
    bitnet_buffer** slot;
    uint64_t bytes;
    void* mapped;
  } wanted[] = {
      {&bound.tokens, ints(n_batch_), nullptr},
      {&bound.positions, ints(n_batch_), nullptr},
      {&bound.sequences, ints(n_batch_), nullptr},
      {&bound.slots, ints(n_batch_), nullptr},
      {&bound.block_tables, ints(table_blocks), nullptr},
      {&bound.output_rows, ints(max_outputs_), nullptr},
      {&bound.logits, row_bytes * max_outputs_, nullptr},
  };
  for (auto& w : wanted) {
    handle<bitnet_buffer> buffer(nullptr, engine_.table().buffer_destroy);
    if (auto ok = make_buffer(buffer, w.bytes, &w.mapped); !ok) return ok;
    *w.slot = buffer.get();
    buffers_.push_back(std::move(buffer));
  }
  memory_ = {static_cast<int32_t*>(wanted[0].mapped), static_cast<int32_t*>(wanted[1].mapped),
             static_cast<int32_t*>(wanted[2].mapped), static_cast<int32_t*>(wanted[3].mapped),
             static_cast<int32_t*>(wanted[4].mapped), static_cast<int32_t*>(wanted[5].mapped),
             static_cast<float*>(wanted[6].mapped)};
  if (auto ok = check(engine_.table().program_bind(program_.get(), &bound, &err), err,
                      "naming the step buffers");
      !ok)
    return ok;

  bitnet_queue* queue = nullptr;
  if (auto ok = check(engine_.table().queue_create(engine_.device(), &queue, &err), err,
                      "making a queue");
      !ok)
    return ok;
  queue_.reset(queue);
  return {};
}

result<void> session::make_buffer(handle<bitnet_buffer>& to, uint64_t bytes, void** mapped) {
  bitnet_error err = blank_error();
  bitnet_buffer* raw = nullptr;
  if (auto ok = check(engine_.table().buffer_create(engine_.device(), bytes, &raw, &err), err,
                      "making a step buffer of " + std::to_string(bytes) + " bytes");
      !ok)
    return ok;
  to.reset(raw);
  return check(engine_.table().buffer_map(raw, mapped, &err), err, "mapping a step buffer");
}

result<void> session::append(int32_t id) {
  if (tokens_.size() >= n_context_)
    return fail(BITNET_CONTEXT_FULL, "the context of " + std::to_string(n_context_) +
                                         " tokens is full; use a larger --ctx-size");
  tokens_.push_back(id);
  return {};
}

// While it lives nobody else takes this sequence's blocks. Begun with as many as are needed, or
// none more; what was lost in the meantime is evaluated again.
class session::hold {
 public:
  static result<hold> begin(session& s, uint64_t blocks) {
    const auto stop = [&] {
      return s.cancelled_ != nullptr && s.cancelled_->load(std::memory_order_relaxed);
    };
    if (auto ok = s.store_->begin(s.kv_, blocks, stop); !ok)
      return std::unexpected(std::move(ok.error()));
    if (s.kv_.lost) s.evaluated_ = 0;
    s.kv_.lost = false;
    return hold(s);
  }
  ~hold() {
    if (session_ != nullptr) session_->store_->end(session_->kv_);
  }
  hold(hold&& other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
  hold& operator=(hold&&) = delete;

 private:
  explicit hold(session& s) : session_(&s) {}
  session* session_;  // nullptr: moved from
};

result<void> session::truncate(uint64_t n) {
  if (n > tokens_.size())
    return fail(BITNET_INVALID_ARGUMENT, "cannot keep " + std::to_string(n) + " tokens of " +
                                             std::to_string(tokens_.size()));
  auto mine = hold::begin(*this, 0);
  if (!mine) return std::unexpected(std::move(mine.error()));
  tokens_.resize(n);
  settle(std::min(evaluated_, n));
  return {};
}

uint64_t session::first_seen() const {
  return window_ == 0 || evaluated_ + 1 <= window_ ? 0 : evaluated_ + 1 - window_;
}

// Gives back the blocks that no later token will see.
void session::forget_unseen() {
  kv_.spare.drop(kv_.table, blocks_for(window_keep_), first_seen() / block_tokens);
}

// Goes back to the first `evaluated` tokens. Where the window has moved past what the next one will
// see, all are evaluated again: what a token is in one layer depends on all windows before it.
void session::settle(uint64_t evaluated) {
  evaluated_ = evaluated;
  kv_.spare.resize(kv_.table, evaluated_);
  for (uint64_t b = 0; b < kv_.table.size(); ++b) {
    const bool seen = b * block_tokens < window_keep_ || (b + 1) * block_tokens > first_seen();
    if (!seen || kv_.table[b] != no_block) continue;
    evaluated_ = 0;
    kv_.spare.resize(kv_.table, 0);
    return;
  }
}

result<void> session::eval(std::span<const int32_t> ids, bool all_rows, std::span<float> logits) {
  const uint64_t before = tokens_.size();
  if (before + ids.size() > n_context_)
    return fail(BITNET_CONTEXT_FULL,
                std::to_string(before) + " tokens and " + std::to_string(ids.size()) +
                    " more do not fit the context of " + std::to_string(n_context_) +
                    "; use a shorter prompt or a larger --ctx-size");
  for (const int32_t id : ids)
    if (id < 0 || static_cast<uint32_t>(id) >= n_vocab_)
      return fail(BITNET_INVALID_ARGUMENT, "token id " + std::to_string(id) +
                                               " is not in the vocabulary of " +
                                               std::to_string(n_vocab_));
  const uint64_t wanted_rows = logits.empty() ? 0 : (all_rows ? ids.size() : 1);
  if (logits.size() < wanted_rows * n_vocab_)
    return fail(BITNET_INVALID_ARGUMENT, "room for " + std::to_string(logits.size()) +
                                             " logits, but " +
                                             std::to_string(wanted_rows * n_vocab_) + " are due");
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  if (tokens_.size() == evaluated_) {
    if (wanted_rows == 0) return {};
    return fail(BITNET_INVALID_ARGUMENT,
                "logits were asked for, but there is no token to evaluate");
  }

  auto mine = hold::begin(*this, std::min<uint64_t>(blocks_for(tokens_.size()), n_blocks_));
  if (!mine) {
    tokens_.resize(before);
    return std::unexpected(std::move(mine.error()));
  }
  const uint64_t evaluated_before = evaluated_;
  const auto undo = [&](failure why) -> result<void> {
    tokens_.resize(before);
    settle(evaluated_before);
    return std::unexpected(std::move(why));
  };

  uint64_t written = 0;  // rows of logits
  while (evaluated_ < tokens_.size()) {
    const uint64_t n = std::min<uint64_t>(tokens_.size() - evaluated_,
                                          all_rows && wanted_rows != 0 ? max_outputs_ : n_batch_);
    forget_unseen();
    if (!kv_.spare.resize(kv_.table, evaluated_ + n))
      return undo({BITNET_INTERNAL, "fewer KV blocks than a step needs"});
    const std::span chunk(tokens_.data() + evaluated_, n);
    uint64_t first_output = n;  // none
    if (wanted_rows != 0) {
      if (!all_rows)
        first_output = evaluated_ + n == tokens_.size() ? n - 1 : n;
      else
        first_output = before > evaluated_ ? std::min(before - evaluated_, n) : 0;
    }
    const uint64_t rows = n - first_output;
    if (auto ok = step(chunk, static_cast<uint32_t>(first_output),
                       logits.subspan(written * n_vocab_, rows * n_vocab_));
        !ok)
      return undo(std::move(ok.error()));
    written += rows;
    evaluated_ += n;
  }
  return {};
}

result<void> session::eval_top(std::span<const int32_t> ids, uint32_t top,
                               std::span<float> logits) {
  top_logits_ = low_memory_ ? 0 : top;
  auto done = eval(ids, false, logits);
  top_logits_ = 0;
  return done;
}

// Runs tokens [evaluated_, evaluated_ + ids.size()) of the sequence.
result<void> session::step(std::span<const int32_t> ids, uint32_t first_output,
                           std::span<float> logits) {
  const auto n = static_cast<uint32_t>(ids.size());
  const uint32_t n_outputs = n - first_output;
  for (uint32_t i = 0; i < n; ++i) {
    const auto position = static_cast<uint32_t>(evaluated_ + i);
    memory_.tokens[i] = ids[i];
    memory_.positions[i] = static_cast<int32_t>(position);
    memory_.sequences[i] = 0;
    memory_.slots[i] = static_cast<int32_t>(kv_.table[position / block_tokens] * block_tokens +
                                            position % block_tokens);
  }
  for (std::size_t i = 0; i < kv_.table.size(); ++i)
    memory_.block_tables[i] = static_cast<int32_t>(kv_.table[i]);
  for (uint32_t i = 0; i < n_outputs; ++i)
    memory_.output_rows[i] = static_cast<int32_t>(first_output + i);

  bitnet_step s{};
  s.struct_size = sizeof s;
  s.n_tokens = n;
  s.n_sequences = 1;
  s.n_outputs = n_outputs;
  s.program = program_.get();
  s.kv_pool = store_->pool();
  s.cancel_token = cancel_token_;
  s.signal_value = ++timeline_;
  s.top_logits = top_logits_;
  s.window = window_;
  s.window_keep = window_keep_;
  bitnet_error err = blank_error();
  bitnet_status status = engine_.table().queue_submit(queue_.get(), &s, &err);
  if (status == BITNET_OK)
    status = engine_.table().queue_wait(queue_.get(), timeline_,
                                        std::numeric_limits<uint64_t>::max(), &err);
  if (status != BITNET_OK)  // only then: a step that works allocates nothing
    return check(status, err,
                 "backend " + engine_.backend_name() + ": computing a step of " +
                     std::to_string(n) + " tokens");
  ++steps_;
  steps_tokens_ += n;
  std::copy_n(memory_.logits, uint64_t{n_outputs} * n_vocab_, logits.begin());
  return {};
}

result<session::usage> session::report() const {
  usage out;
  bitnet_error err = blank_error();
  uint32_t count = 0;
  const auto stats = [&](bitnet_kernel_stat* to) {
    return check(
        engine_.table().program_stats(program_.get(), to, sizeof(bitnet_kernel_stat), &count, &err),
        err, "backend " + engine_.backend_name() + ": asking what ran");
  };
  if (auto ok = stats(nullptr); !ok) return std::unexpected(std::move(ok.error()));
  out.kernels.resize(count);
  if (auto ok = stats(out.kernels.data()); !ok) return std::unexpected(std::move(ok.error()));
  out.kernels.resize(std::min<std::size_t>(count, out.kernels.size()));
  out.steps = steps_;
  out.tokens = steps_tokens_;
  const kv_store::usage kv = store_->of(kv_);
  out.kv_blocks = static_cast<uint32_t>(kv.blocks);
  out.evictions = kv.evictions;
  out.kv_budget = engine_.budget().bytes;
  out.window = window_;
  out.window_keep = window_keep_;
  out.dtype_k = dtype_k_;
  out.dtype_v = dtype_v_;
  out.kv_bytes = kv_bytes_;
  return out;
}

}  // namespace bitnet::session
