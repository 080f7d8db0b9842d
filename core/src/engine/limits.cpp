#include "engine/limits.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/wording.hpp"
#include "compute/kv_types.hpp"
#include "kv/blocks.hpp"
#include "model/context_room.hpp"

namespace bitnet::engine {
namespace {

using kv::block_tokens;
using kv::blocks_for;
using model::largest_context;

// Host memory that the rows of one step may take; a larger step is cut.
constexpr uint64_t rows_budget_bytes = 64U << 20;
constexpr uint32_t largest_batch = 1U << 16;

// Fails unless the device can keep keys or values of this model as `dtype`.
result<void> check_kv_type(const select::choice& choice, const model::hyperparameters& shape,
                           uint32_t dtype, const char* what, word option) {
  const compute::kv_type* type = compute::find_kv_type(dtype);
  if (type == nullptr)
    return fail(BITNET_INVALID_ARGUMENT, fmt::format("there is no KV type {}", dtype));
  const std::string advice = fmt::format("; use {} f16", say(option));
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
              fmt::format("{} keeps {} as {}, not as {}{}, or {}", choice.device_name(), what,
                          known, type->name, advice, say(word::request_another)));
}

uint64_t kv_head_bytes(uint32_t dtype, uint64_t head_dim) {
  return compute::kv_head_bytes(*compute::find_kv_type(dtype), head_dim);
}

uint32_t affordable_blocks(uint64_t budget, uint64_t block_bytes) {
  if (budget == 0 || block_bytes == 0) return blocks_for(largest_context);
  return static_cast<uint32_t>(std::min<uint64_t>(budget / block_bytes, 1U << 24));
}

// States of a session: the sequence's, and a copy of an earlier one.
constexpr uint32_t states_of_session = 2;

// The most tokens of one sequence in a step. With a window, they need blocks beside the window of
// the first of them.
uint32_t most_of_sequence(const limits& l) {
  if (l.window == 0) return l.n_context;
  return std::min(l.n_context, blocks_for(l.window) * block_tokens);
}

// The most blocks that a sequence holds at a time.
uint32_t blocks_in_use(const limits& l) {
  const uint32_t all = blocks_for(l.n_context);
  if (l.window == 0) return all;
  // Tokens that a step sees or writes.
  const uint64_t span = uint64_t{l.window} - 1 + std::min(l.n_batch, most_of_sequence(l));
  const uint64_t touched = (span + block_tokens - 2) / block_tokens + 1;  // wherever it begins
  return static_cast<uint32_t>(std::min<uint64_t>(all, blocks_for(l.window_keep) + touched));
}

// Sets the tokens of the context. `trained`: the model's; `affordable`: blocks that a budget has
// room for.
void choose_context(limits& l, const session_options& options, uint32_t trained,
                    uint64_t affordable) {
  const bool windowed = options.window != 0;
  l.n_context = options.n_context != 0 ? options.n_context
                : windowed             ? trained
                                       : std::min(trained, default_context);
  if (options.n_context == 0 && !windowed && affordable != 0)
    l.n_context = static_cast<uint32_t>(std::min<uint64_t>(l.n_context, affordable * block_tokens));
}

// Sets the tokens of a step: no more than its sequences can have in it.
void choose_batch(limits& l, const session_options& options, uint32_t max_sequences) {
  const uint32_t wanted = options.n_batch == 0 ? 512 : options.n_batch;
  const uint64_t most = uint64_t{most_of_sequence(l)} * max_sequences;
  l.n_batch = static_cast<uint32_t>(std::min<uint64_t>(wanted, most));
}

// Sets a window that is smaller than the context. Fails if the device's attention has no window.
result<void> choose_window(limits& l, const session_options& options, uint32_t attention_flags) {
  if (options.window == 0 && options.window_keep != 0)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{} {} says what stays in view beside a window; {} too",
                            say(word::window_keep), options.window_keep, say(word::set_window)));
  if (options.window == 0) return {};
  if ((attention_flags & BITNET_ATTENTION_WINDOW) == 0)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("this device's attention has no window; {}", say(word::leave_window)));
  if (options.window >= l.n_context) return {};
  l.window = options.window;
  l.window_keep = options.window_keep;
  return {};
}

result<void> check_extent(const limits& l) {
  if (l.n_context == 0 || l.n_context > largest_context)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("a context of {} tokens is not between 1 and {}; choose another {}",
                            l.n_context, largest_context, say(word::n_context)));
  if (l.n_batch > largest_batch)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("a batch of {} tokens is more than {}; choose another {}", l.n_batch,
                            largest_batch, say(word::n_batch)));
  return {};
}

}  // namespace

result<void> check_kv_types(const select::choice& choice, const model::hyperparameters& shape,
                            const session_options& options) {
  if (auto ok = check_kv_type(choice, shape, options.dtype_k, "keys", word::kv_k); !ok) return ok;
  return check_kv_type(choice, shape, options.dtype_v, "values", word::kv_v);
}

result<limits> limits_of(const model::hyperparameters& shape, const session_options& options,
                         uint32_t attention_flags, uint64_t budget, uint32_t max_sequences) {
  limits out;
  out.states_bytes = states_of_session * shape.state_elements() * sizeof(float);
  out.block_bytes = uint64_t{block_tokens} * shape.n_attending() * shape.n_kv_heads *
                    (kv_head_bytes(options.dtype_k, shape.head_dim) +
                     kv_head_bytes(options.dtype_v, shape.head_dim));
  if (budget != 0 && out.states_bytes >= budget)
    return fail(BITNET_OUT_OF_MEMORY,
                fmt::format("the states of a session take {} bytes, which leaves nothing of the KV "
                            "budget of {}; use a larger {}",
                            out.states_bytes, budget, say(word::kv_budget)));
  const uint64_t affordable =
      affordable_blocks(budget == 0 ? 0 : budget - out.states_bytes, out.block_bytes);

  choose_context(out, options, shape.n_context, affordable);
  if (auto ok = choose_window(out, options, attention_flags); !ok)
    return std::unexpected(std::move(ok.error()));
  choose_batch(out, options, max_sequences);
  if (auto ok = check_extent(out); !ok) return std::unexpected(std::move(ok.error()));
  out.row_floats = options.embeddings ? shape.n_embedding : shape.n_vocab;
  const uint64_t row_bytes = out.row_floats * sizeof(float);
  out.max_outputs =
      static_cast<uint32_t>(std::clamp<uint64_t>(rows_budget_bytes / row_bytes, 1, out.n_batch));
  out.n_blocks = blocks_in_use(out);
  if (out.n_blocks > affordable)
    return fail(
        BITNET_OUT_OF_MEMORY,
        fmt::format(
            "keys and values of {} tokens take {} bytes, more than the KV budget of {}; use a "
            "smaller {}, q8_0 or q4_0 as {} and {}, {}, or use a larger {}",
            uint64_t{out.n_blocks} * block_tokens, out.n_blocks * out.block_bytes, budget,
            say(word::n_context), say(word::kv_k), say(word::kv_v), say(word::set_window),
            say(word::kv_budget)));
  return out;
}

bitnet_kv_config pool_of(const model::hyperparameters& shape, const session_options& options,
                         const limits& most, uint64_t budget) {
  bitnet_kv_config kv{};
  kv.struct_size = sizeof kv;
  kv.dtype_k = options.dtype_k;
  kv.dtype_v = options.dtype_v;
  kv.n_layers = shape.n_attending();
  kv.n_kv_heads = shape.n_kv_heads;
  kv.head_dim_k = kv.head_dim_v = shape.head_dim;
  kv.block_tokens = block_tokens;
  // With a budget, as many sessions have states as could all be at the end of their contexts.
  const uint64_t session_bytes = most.states_bytes + most.n_blocks * most.block_bytes;
  const uint64_t sessions = budget == 0 ? 1 : std::max<uint64_t>(1, budget / session_bytes);
  const uint64_t for_states = sessions * most.states_bytes;
  if (for_states != 0) {
    kv.state_elements = static_cast<uint32_t>(shape.state_elements());
    kv.n_states = static_cast<uint32_t>(sessions * states_of_session);
  }
  kv.n_blocks =
      budget == 0 ? most.n_blocks : affordable_blocks(budget - for_states, most.block_bytes);
  return kv;
}

bitnet_kv_config pool_of(bitnet_kv_config all, const model::hyperparameters& shape,
                         const model::section& of) {
  if (of == shape.whole()) return all;
  all.n_layers = shape.n_attending(of);
  if (all.n_layers == 0) all.n_layers = all.n_blocks = 1;
  all.state_elements = static_cast<uint32_t>(shape.state_elements(of));
  if (all.state_elements == 0) all.n_states = 0;
  return all;
}

uint64_t state_bytes(const bitnet_kv_config& kv) {
  return uint64_t{kv.state_elements} * sizeof(float);
}

// Sizes of steps: one token for each sequence, and whole batches of prompts.
std::vector<uint32_t> buckets_of(uint32_t n_batch, uint32_t max_sequences) {
  std::vector<uint32_t> out;
  for (uint32_t n = 1; n < n_batch && n < 2 * max_sequences; n *= 2) out.push_back(n);
  out.push_back(n_batch);
  return out;
}

program_bounds::program_bounds(const session_options& options, const limits& most,
                               uint32_t max_sequences)
    : buckets_(buckets_of(most.n_batch, max_sequences)) {
  bounds_.struct_size = sizeof bounds_;
  if (options.deterministic) bounds_.flags |= BITNET_PROGRAM_DETERMINISTIC;
  if (options.profile || (options.trace.call != nullptr && options.trace.times))
    bounds_.flags |= BITNET_PROGRAM_PROFILE;
  bounds_.max_tokens = most.n_batch;
  bounds_.max_sequences = max_sequences;
  bounds_.max_outputs = most.max_outputs;
  bounds_.max_blocks = blocks_for(most.n_context);
  bounds_.block_tokens = block_tokens;
  bounds_.precisions = options.precisions;
  bounds_.n_buckets = static_cast<uint32_t>(buckets_.size());
  bounds_.buckets = buckets_.data();
}

}  // namespace bitnet::engine
