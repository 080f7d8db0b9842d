#include "shadow/cut_program.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/environment.hpp"
#include "compute/kv_types.hpp"
#include "kv/blocks.hpp"
#include "plugin/loading/kept_state.hpp"

namespace bitnet::shadow {

std::vector<op_range> common_ops(const compute::graph& g, std::span<const engine::program_op> one,
                                 std::span<const engine::program_op> other) {
  std::vector<op_range> out;
  for (std::size_t i = 0; i < g.ops.size(); ++i) {
    const bitnet_op& o = g.ops[i];
    if (o.body_count == 0) {
      out.push_back({.first = i, .last = i});
    } else if (one[i].level != BITNET_LEVEL_NONE || other[i].level != BITNET_LEVEL_NONE) {
      out.push_back({.first = i, .last = i + o.body_count});
      i += o.body_count;
    }
  }
  return out;
}

namespace {

bool is_quantiser(uint32_t op) {
  return op == BITNET_OP_ACT_QUANT_I8 || op == BITNET_OP_ACT_QUANT_I8_GROUPED;
}

bool uses_pool(const compute::graph& g) {
  return std::ranges::any_of(g.ops, [](const bitnet_op& o) {
    return o.op == BITNET_OP_KV_WRITE || o.op == BITNET_OP_ATTN_PAGED ||
           o.op == BITNET_OP_SHORT_CONV || o.op == BITNET_OP_DELTA_RULE;
  });
}

// What a cut behind op `last` shows of each value and layer.
struct crossing {
  std::vector<bool> written, read;      // of each value: before and behind the cut
  std::vector<std::size_t> kv_written;  // by layer: the op that wrote them
  std::vector<uint32_t> kv_read;        // layers whose keys are read behind the cut
  static constexpr std::size_t never = SIZE_MAX;

  crossing(const compute::graph& g, std::size_t last, bool quantised)
      : written(g.values.size()), read(g.values.size()) {
    for (std::size_t i = 0; i < g.ops.size(); ++i) {
      const bitnet_op& o = g.ops[i];
      if (o.body_count != 0) continue;  // its body has the same reads and writes
      if (i > last)
        note_reads(o);
      else
        note_writes(o, i, quantised);
    }
  }

 private:
  void note_reads(const bitnet_op& o) {
    for (const uint32_t v : o.inputs)
      if (v != BITNET_NONE) read[v] = true;
    if (o.op == BITNET_OP_ATTN_PAGED) kv_read.push_back(static_cast<uint32_t>(o.ints[0]));
  }
  void note_writes(const bitnet_op& o, std::size_t i, bool quantised) {
    for (const uint32_t v : o.outputs)
      if (v != BITNET_NONE && (quantised || !is_quantiser(o.op))) written[v] = true;
    if (o.op != BITNET_OP_KV_WRITE) return;
    const auto layer = static_cast<std::size_t>(o.ints[0]);
    if (kv_written.size() <= layer) kv_written.resize(layer + 1, never);
    kv_written[layer] = i;
  }
};

}  // namespace

cut_program cut_behind(const compute::graph& whole, const op_range& at, bool quantised) {
  cut_program out;
  out.graph.values = whole.values;
  for (std::size_t i = 0; i <= at.last; ++i)
    if (i + whole.ops[i].body_count <= at.last) out.graph.ops.push_back(whole.ops[i]);
  out.graph.add_facts();
  const crossing over(whole, at.last, quantised);
  // Outputs of a composite exist; values within its body need not.
  const bitnet_op& op = whole.ops[at.first];
  for (uint32_t v = 0; v < whole.values.size(); ++v) {
    const bool is_own = std::ranges::find(op.outputs, v) != std::end(op.outputs);
    if (!over.written[v] || (!is_own && !over.read[v])) continue;
    out.values.push_back(v);
    out.graph.add_port(v == whole.logits() ? BITNET_PORT_LOGITS : BITNET_PORT_VALUE_OUT, v);
    out.shows_op = out.shows_op || is_own;
  }
  for (const uint32_t layer : over.kv_read) {
    if (layer >= over.kv_written.size() || over.kv_written[layer] == crossing::never) continue;
    out.kv_layers.push_back(layer);
    out.shows_op = out.shows_op || over.kv_written[layer] >= at.first;
  }
  return out;
}

// ---- running it --------------------------------------------------------------------------------

result<std::unique_ptr<cut_runner>> cut_runner::open(std::shared_ptr<engine::engine> e,
                                                     std::size_t n_tokens) {
  std::unique_ptr<cut_runner> out(new cut_runner(std::move(e)));
  const std::lock_guard device_lock(out->engine_->device_mutex());
  if (auto ok = out->prepare(n_tokens); !ok)
    return pass_on(std::move(ok), fmt::format("backend {}", out->on().backend_name()));
  return out;
}

cut_runner::~cut_runner() {
  const std::lock_guard device_lock(engine_->device_mutex());
  const plugin::kept_thread kept(*on().choice().backend->complaints());
  pools_.reset();
}

result<void> cut_runner::prepare(std::size_t n_tokens) {
  const model::hyperparameters& shape = engine_->model().shape();
  options_.n_batch = static_cast<uint32_t>(n_tokens);
  if (auto ok = check_kv_types(on().choice(), shape, options_); !ok) return ok;
  auto most = limits_of(shape, options_, on().choice().device.attention_flags, 0);
  if (!most) return std::unexpected(std::move(most.error()));
  limits_ = *most;
  if (limits_.n_batch < n_tokens)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{} tokens are more than the {} of the model's context; compare fewer",
                            n_tokens, limits_.n_batch));
  bitnet_kv_config room = pool_of(shape, options_, limits_, 0);
  room.n_blocks = kv::blocks_for(n_tokens);
  auto pools = engine::kv_pools::make(*engine_, room);
  if (!pools) return std::unexpected(std::move(pools.error()));
  pools_ = std::move(*pools);
  const plugin::kept_process kept(on().choice().backend->complaints());
  whole_ = on().graph(limits_.n_context, model::ending::logits);
  auto ops = program_ops(on(), options_, limits_);
  if (!ops) return std::unexpected(std::move(ops.error()));
  ops_ = std::move(*ops);
  return {};
}

result<cut_runner::built> cut_runner::build(const cut_program& at) {
  const plugin::kept_process kept(on().choice().backend->complaints());
  const engine::program_bounds bounds(options_, limits_);
  bitnet_weights* const weights = on().weights();
  auto program =
      as_result(compute::program::build(on().device(), at.graph, {&weights, 1}, bounds.get()),
                "compiling the model up to an op");
  if (!program) return std::unexpected(std::move(program.error()));
  bitnet_kv_pool* const pool = uses_pool(at.graph) ? pools_->of_part(0).made.get() : nullptr;
  auto binding =
      as_result(compute::binding::make(on().device(), *program, at.graph, bounds.get(), pool),
                "making the memory of a step");
  if (!binding) return std::unexpected(std::move(binding.error()));
  auto queue = as_result(compute::queue::make(on().device()), "making a queue");
  if (!queue) return std::unexpected(std::move(queue.error()));
  return built{std::move(*program), std::move(*binding), std::move(*queue)};
}

uint32_t cut_runner::n_outputs(std::size_t n_tokens) const {
  return static_cast<uint32_t>(std::min<std::size_t>(n_tokens, limits_.max_outputs));
}

// Sets the facts of one sequence in blocks 0, 1, 2 ... and state 0; the last rows are outputs.
void cut_runner::note_facts(const compute::binding& to, std::span<const int32_t> tokens,
                            std::size_t first) const {
  const auto fill = [&](uint32_t role, std::size_t n, const auto& value) {
    auto* const memory = to.of<int32_t>(role);
    for (std::size_t i = 0; memory != nullptr && i < n; ++i)
      memory[i] = static_cast<int32_t>(value(i));
  };
  const auto after_first = [&](std::size_t i) { return first + i; };
  const auto itself = [](std::size_t i) { return i; };
  const std::size_t n = tokens.size(), n_rows = n_outputs(n);
  fill(BITNET_PORT_TOKENS, n, [&](std::size_t i) { return tokens[i]; });
  fill(BITNET_PORT_POSITIONS, n, after_first);
  fill(BITNET_PORT_SLOTS, n, after_first);
  fill(BITNET_PORT_SEQUENCES, n, [](std::size_t) { return 0; });
  fill(BITNET_PORT_BLOCK_TABLES, kv::blocks_for(first + n), itself);
  fill(BITNET_PORT_OUTPUT_ROWS, n_rows, [&](std::size_t i) { return n - n_rows + i; });
  fill(BITNET_PORT_STATES, 1, itself);
}

result<void> cut_runner::await(built& with) {
  return as_result(with.queue.wait(environment::step_timeout_ns()), "computing up to an op");
}

result<void> cut_runner::compute(built& with, std::span<const int32_t> tokens, std::size_t first) {
  note_facts(with.binding, tokens, first);
  bitnet_step step{};
  step.n_tokens = static_cast<uint32_t>(tokens.size());
  step.n_sequences = 1;
  step.n_outputs = n_outputs(tokens.size());
  step.binding = with.binding.get();
  if (auto ok = as_result(with.queue.submit(step), "computing up to an op"); !ok) return ok;
  return await(with);
}

std::vector<contents> cut_runner::read_values(const cut_program& at, const built& from,
                                              std::size_t n_tokens) const {
  bitnet_program_options now{};  // as if the program allowed no larger step
  now.max_tokens = static_cast<uint32_t>(n_tokens);
  now.max_outputs = n_outputs(n_tokens);
  std::vector<contents> out;
  for (std::size_t i = 0; i < at.graph.ports.size(); ++i) {
    const bitnet_port& port = at.graph.ports[i];
    if (port.value == BITNET_NONE) continue;
    const auto* const begin = from.binding.port<std::byte>(i);
    out.push_back({at.graph.values[port.value].dtype,
                   {begin, begin + compute::port_bytes(at.graph, port, now)}});
  }
  return out;
}

// Reads keys and values in the layout of exports: by layer the keys, then the values, by head and
// token of a block.
result<void> cut_runner::read_kv(const cut_program& at, built& from, std::size_t n_tokens,
                                 std::vector<contents>& to) {
  if (at.kv_layers.empty()) return {};
  const engine::kv_pools::pool& pool = pools_->of_part(0);
  const uint64_t block_bytes = pool.block_bytes();
  std::vector<uint32_t> blocks(kv::blocks_for(n_tokens));
  for (uint32_t i = 0; i < blocks.size(); ++i) blocks[i] = i;
  std::vector<std::byte> all(blocks.size() * block_bytes);
  if (auto ok = as_result(from.queue.write_out(pool.made.get(), blocks, all), "reading keys"); !ok)
    return ok;
  if (auto ok = await(from); !ok) return ok;
  const bitnet_kv_config& config = pool.config;
  const uint64_t token_bytes =
      compute::kv_head_bytes(*compute::find_kv_type(config.dtype_k), config.head_dim_k);
  const uint64_t heads = uint64_t{2} * config.n_kv_heads;  // keys, then values, which are as wide
  for (const uint32_t layer : at.kv_layers) {
    contents& one = to.emplace_back(contents{config.dtype_k, {}});
    for (std::size_t t = 0; t < n_tokens; ++t)
      for (uint64_t head = 0; head < heads; ++head) {
        const std::byte* const begin =
            all.data() + t / kv::block_tokens * block_bytes +
            ((layer * heads + head) * kv::block_tokens + t % kv::block_tokens) * token_bytes;
        one.bytes.insert(one.bytes.end(), begin, begin + token_bytes);
      }
  }
  return {};
}

// A step that never ended may still write to its memory, which is therefore never freed.
void cut_runner::leave_behind(built with) {
  struct left {
    std::shared_ptr<engine::engine> on;
    std::shared_ptr<const engine::kv_pools> pools;
    built with;
  };
  [[maybe_unused]] static std::vector<left*>& all = *new std::vector<left*>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  all.push_back(new left{engine_, std::move(pools_), std::move(with)});
}

result<std::vector<contents>> cut_runner::run(const cut_program& at,
                                              std::span<const std::span<const int32_t>> steps) {
  const std::lock_guard device_lock(engine_->device_mutex());
  const plugin::kept_thread kept(*on().choice().backend->complaints());
  const auto doing = fmt::format("backend {}", on().backend_name());
  auto made = build(at);
  if (!made) return pass_on(std::move(made), doing);
  std::size_t done = 0;
  result<void> ok;
  for (const auto& step : steps) {
    ok = compute(*made, step, done);
    if (!ok) break;
    done += step.size();
  }
  std::vector<contents> out;
  if (ok) {
    out = read_values(at, *made, steps.back().size());
    ok = read_kv(at, *made, done, out);
  }
  if (!ok && ok.error().status == BITNET_TIMEOUT) leave_behind(std::move(*made));
  if (!ok) return pass_on(std::move(ok), doing);
  return out;
}

}  // namespace bitnet::shadow
