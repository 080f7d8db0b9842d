// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// A compiled graph: a schedule of kernels over an arena, run once per step by all workers together.
//
// One parallel_run carries a whole step; between ops the workers meet at a barrier. Steps of one
// program run one at a time, whatever their bindings, and so share the arena.

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "bitnet/abi/program.h"
#include "bitnet/sdk/compute/arena.hpp"
#include "bitnet/sdk/compute/graph_reader.hpp"
#include "bitnet/sdk/compute/step.hpp"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/handle.hpp"
#include "bitnet/sdk/host.hpp"
#include "bitnet/sdk/interpreter/composites.hpp"
#include "bitnet/sdk/interpreter/kernel.hpp"
#include "bitnet/sdk/interpreter/kv_pool.hpp"
#include "bitnet/sdk/interpreter/team_size.hpp"
#include "bitnet/sdk/interpreter/weights.hpp"

namespace bitnet::sdk {

// The author's kernel that runs a primitive on this weight (nullptr: the op has no weight); nullptr
// if there is none.
inline const primitive* find_primitive(const definition& author, uint32_t op,
                                       const weight* w) noexcept {
  const uint32_t format = w ? w->format : BITNET_FORMAT_NONE;
  for (const primitive& p : author.primitives)
    if (p.op == op && (p.format == BITNET_FORMAT_NONE || p.format == format) &&
        (!p.fits || (w && p.fits(*w))) && (!w || reads(p.packing, *w)))
      return &p;
  return nullptr;
}

class program;

// The memory of a program's ports. Owner: the program outlives it.
class binding {
 public:
  explicit binding(program& of) noexcept : of_(of) {}
  ~binding();
  binding(const binding&) = delete;
  binding& operator=(const binding&) = delete;

  program& of() const noexcept { return of_; }
  bitnet_status prepare(const bitnet_prepare_request& request, const reporter& report) const;

 private:
  friend program;
  struct place {
    uint32_t value;
    uint8_t* data;
  };
  program& of_;
  step_view step_;
  std::vector<place> values_;  // values of the graph outside the arena
  const kv_pool* pool_ = nullptr;
};

class program {
 public:
  using weights = weight_list<weight_set>;

  program(const definition& author, host services) noexcept : author_(author), host_(services) {}

  bitnet_status build(const bitnet_graph* g, const weights& all,
                      const bitnet_program_options* options, uint64_t cancel_token,
                      const reporter& report) {
    if (bitnet_status s = compile(g, all, options, report); failed(s)) return s;
    for (item& it : items_) {
      if (host_.cancelled(cancel_token))
        return report.fail(BITNET_CANCELLED, "the caller cancelled building the program");
      if (bitnet_status s = pack_weights(it, report); failed(s)) return s;
      if (it.fused) prepare_top(it);
    }
    return allocate(report);
  }

  // The bytes that the program would need, and the level of each op; nothing is allocated.
  // Primitives without a kernel have level NONE; `bytes` is then 0.
  bitnet_status query(const bitnet_graph* g, const weights& all,
                      const bitnet_program_options* options, std::vector<uint32_t>& levels,
                      uint64_t& bytes, const reporter& report) {
    if (bitnet_status s = read_levels(g, all, levels, report); failed(s)) return s;
    bytes = 0;
    if (lacks_primitive(levels, all)) return BITNET_OK;
    if (bitnet_status s = compile(g, all, options, report); failed(s)) return s;
    for (uint64_t i = 0; i < levels.size(); ++i)
      if (is_composite(graph_.ops[i])) levels[i] = level_of_composite(i, all);
    room needed;
    if (bitnet_status s = measure(needed, report); failed(s)) return s;
    bytes = needed.arena + needed.scratch + needed.keep;
    return BITNET_OK;
  }

  const bitnet_program_options& limits() const noexcept { return limits_; }

  // `see` returns the memory of a buffer, `pool_of` the pool of a handle.
  template <class See, class PoolOf>
  bitnet_status bind(const bitnet_bind_request* request, binding& out, const See& see,
                     const PoolOf& pool_of, const reporter& report) const {
    bitnet_bind_request known{};
    std::vector<bitnet_bound> named;
    std::vector<bound_memory> bound;
    if (bitnet_status s = check_bound(request, graph_, limits_, memory::alignment, known, named,
                                      bound, see, report);
        failed(s))
      return s;
    out.pool_ = pool_of(known.kv_pool);
    if (bitnet_status s =
            check_pool(graph_, limits_, out.pool_ ? &out.pool_->storage() : nullptr, report);
        failed(s))
      return s;
    out.step_ = view_of(graph_, limits_, bound);
    if (out.pool_) out.step_.kv = out.pool_->storage();
    for (uint64_t i = 0; i < bound.size(); ++i)
      if (graph_.ports[i].value != BITNET_NONE)
        out.values_.push_back({graph_.ports[i].value, bound[i].data});
    return BITNET_OK;
  }

  // Checks a step and the contents of its ports, then runs it to its end.
  bitnet_status run(const bitnet_step& step, const binding& on, const reporter& report) {
    const std::scoped_lock lock(running_);
    if (bitnet_status s = check(step, on, report); failed(s)) return s;
    if (bound_ != &on)
      for (const binding::place& p : on.values_) point_at(p.value, p.data);
    bound_ = &on;
    step_ = on.step_;
    step_.n_tokens = step.n_tokens;
    step_.n_outputs = step.n_outputs;
    step_.top_logits = step.top_logits;
    step_.window = step.window;
    step_.window_keep = step.window != 0 ? step.window_keep : 0;
    for (uint64_t i = 0; i < calls_.size(); ++i) calls_[i].rows = rows_of(row_values_[i]);

    const uint32_t most = std::min(host_.width(), width_);
    const bool alone = step.n_tokens == 1;
    const uint32_t workers = alone ? team_size_.next(most) : most;
    barrier meeting(workers, cores_, spins_of(author_.poll));
    for (pieces& p : dealt_) p.forget();
    std::atomic<uint64_t> stop_after{UINT64_MAX};
    auto work = [&](uint32_t worker, uint32_t n) noexcept {
      run_as(worker, n, meeting, step.cancel_token, stop_after);
    };
    if (host_.cancelled(step.cancel_token))
      return report.fail(BITNET_CANCELLED, "the caller cancelled the step");
    for (const item& it : items_)
      if (it.fused && takes_top(it))
        for (uint64_t c = it.first_call; c < it.first_call + it.n_calls; ++c)
          if (calls_[c].w && calls_[c].w->packed)
            if (bitnet_status s = make_packed(author_, host_, *calls_[c].w, report); failed(s))
              return s;
    const uint64_t start = host_.now_ns();
    if (bitnet_status s = host_.parallel(workers, work); failed(s))
      return report.fail(s, "the host could not run %u workers", workers);
    if (stop_after.load() != UINT64_MAX)
      return report.fail(BITNET_CANCELLED, "the caller cancelled the step");
    if (alone) team_size_.took(host_.now_ns() - start, meeting.sleeps());
    return BITNET_OK;
  }

  // Called when a binding is destroyed, since another one may get its address.
  void forget(const binding& gone) noexcept {
    const std::scoped_lock lock(running_);
    if (bound_ == &gone) bound_ = nullptr;
  }

  // Counts of the kernels that ran at least once.
  std::vector<bitnet_kernel_stat> stats() const {
    std::vector<bitnet_kernel_stat> out;
    for (const counter& c : counters_) {
      const uint64_t calls = c.calls.load(std::memory_order_relaxed);
      if (calls == 0) continue;
      bitnet_kernel_stat stat{};
      stat.struct_size = sizeof stat;
      stat.op = c.op;
      stat.calls = calls;
      stat.time_ns = c.time_ns.load(std::memory_order_relaxed);
      stat.bytes = c.bytes.load(std::memory_order_relaxed);
      std::snprintf(stat.id, sizeof stat.id, "%s", c.id->c_str());
      out.push_back(stat);
    }
    return out;
  }

 private:
  struct item {
    const primitive* single = nullptr;  // or
    const composite* fused = nullptr;
    roles parts;
    uint64_t first_call = 0, n_calls = 1;
    uint64_t counter = 0, top_counter = 0;
    uint64_t weight_bytes = 0;  // read per call
    top_state top;
  };
  struct counter {
    counter(uint32_t op_id, const std::string& kernel) : op(op_id), id(&kernel) {}
    counter(counter&& other) noexcept : op(other.op), id(other.id) {}
    uint32_t op;
    const std::string* id;
    std::atomic<uint64_t> calls{0}, time_ns{0}, bytes{0};
  };

  struct room {
    uint64_t arena = 0, scratch = 0, keep = 0;    // bytes
    uint64_t scratch_floats = 0, keep_bytes = 0;  // of a worker
    std::vector<lifetime> lives;
  };

  bitnet_status compile(const bitnet_graph* g, const weights& all,
                        const bitnet_program_options* options, const reporter& report) {
    if (bitnet_status s = check_limits(options, limits_, report); failed(s)) return s;
    if (bitnet_status s = graph_reader(all, report, graph_).read(g); failed(s)) return s;
    if (graph_.windowed_layers && !has_layer_windows())
      return report.fail(BITNET_UNSUPPORTED,
                         "layers of the graph have attention windows, which this backend does not "
                         "compute; use another backend");
    return schedule(all, report);
  }

  bool has_layer_windows() const noexcept {
    return (author_.device.attention_flags & BITNET_ATTENTION_LAYER_WINDOW) != 0;
  }

  // Fills in the levels of primitives; composites follow once the graph is checked.
  bitnet_status read_levels(const bitnet_graph* g, const weights& all,
                            std::vector<uint32_t>& levels, const reporter& report) {
    std::vector<bitnet_op> ops;
    if (bitnet_status s = read_ops(g, ops, report); failed(s)) return s;
    levels.assign(ops.size(), BITNET_LEVEL_NONE);
    for (uint64_t i = 0; i < ops.size(); ++i) {
      const uint32_t w = ops[i].weights[0];
      if (is_composite(ops[i])) continue;
      if (has_own_window(ops[i]) && !has_layer_windows()) continue;
      if (w != BITNET_NONE && w >= all.size()) continue;  // rejected below, if the op is known
      const primitive* found =
          find_primitive(author_, ops[i].op, w == BITNET_NONE ? nullptr : &all.at(w).view);
      if (found) levels[i] = found->level;
    }
    ops_.swap(ops);
    return BITNET_OK;
  }
  // The level of an op is unknown if its weight is missing.
  bool lacks_primitive(const std::vector<uint32_t>& levels, const weights& all) const noexcept {
    for (uint64_t i = 0; i < levels.size(); ++i) {
      const uint32_t w = ops_[i].weights[0];
      const bool dangles = w != BITNET_NONE && w >= all.size() && find_op(ops_[i].op);
      if (levels[i] == BITNET_LEVEL_NONE && !is_composite(ops_[i]) && !dangles) return true;
    }
    return false;
  }
  uint32_t level_of_composite(uint64_t at, const weights& all) const {
    roles parts;
    const bitnet_op& op = graph_.ops[at];
    const bool fused = choose(op, std::span(&op + 1, op.body_count), all, parts) != nullptr;
    return fused ? BITNET_LEVEL_FUSED : BITNET_LEVEL_NONE;
  }

  bitnet_status schedule(const weights& all, const reporter& report) {
    const std::vector<bitnet_op>& ops = graph_.ops;
    for (uint64_t i = 0; i < ops.size(); ++i) {
      if (is_composite(ops[i])) {
        const std::span body(&ops[i + 1], ops[i].body_count);
        item fused;
        fused.fused = choose(ops[i], body, all, fused.parts);
        if (!fused.fused) continue;  // its body follows
        fused.first_call = calls_.size();
        fused.n_calls = body.size();
        fused.counter = count(ops[i].op, fused.fused->id);
        for (const bitnet_op& op : body) add_call(op, all);
        fused.weight_bytes = weight_bytes(fused);
        items_.push_back(std::move(fused));
        i += body.size();
        continue;
      }
      const weight* w =
          ops[i].weights[0] == BITNET_NONE ? nullptr : &all.at(ops[i].weights[0]).view;
      item one;
      one.single = find_primitive(author_, ops[i].op, w);
      if (!one.single && w && w->rows_dropped())
        return report.fail(BITNET_UNSUPPORTED,
                           "op %llu (%s): no kernel reads a weight that is packed as %s",
                           static_cast<unsigned long long>(i), find_op(ops[i].op)->name,
                           w->packed->how->layout_id.c_str());
      if (!one.single)
        return report.fail(BITNET_UNSUPPORTED, "op %llu (%s): no kernel for weight format %u",
                           static_cast<unsigned long long>(i), find_op(ops[i].op)->name,
                           w ? w->format : BITNET_FORMAT_NONE);
      one.first_call = calls_.size();
      one.counter = count(ops[i].op, one.single->id);
      add_call(ops[i], all);
      one.weight_bytes = weight_bytes(one);
      items_.push_back(std::move(one));
    }
    return BITNET_OK;
  }

  static const packing& packing_of(const item& it) noexcept {
    return it.fused ? it.fused->packing : it.single->packing;
  }

  // Packs the weights of an item before the first step, unless the host brought the packed form.
  bitnet_status pack_weights(const item& it, const reporter& report) const {
    if (!packing_of(it).bytes) return BITNET_OK;
    for (uint64_t c = it.first_call; c < it.first_call + it.n_calls; ++c)
      if (calls_[c].w && calls_[c].w->packed)
        if (bitnet_status s = make_packed(author_, host_, *calls_[c].w, report); failed(s))
          return s;
    return BITNET_OK;
  }

  // Matrices are read whole in every step, with the scales of their groups; an embedding only at
  // the rows of the tokens.
  uint64_t weight_bytes(const item& it) const noexcept {
    uint64_t bytes = 0;
    for (uint64_t c = it.first_call; c < it.first_call + it.n_calls; ++c) {
      const weight* w = calls_[c].w;
      if (!w) continue;
      const bool packed = packing_of(it).bytes && w->packed;
      uint64_t all = packed ? w->packed->bytes : w->row_bytes * w->m;
      if (w->scale_group != 0 && !(packed && w->packed->how->holds_scales))
        all += w->m * (w->k / w->scale_group) * sizeof(float);
      bytes += calls_[c].op == BITNET_OP_EMBED_GATHER ? all / w->m : all;
    }
    return bytes;
  }

  // Bytes that coded copies saved since the last call.
  uint64_t take_spared(const item& it) const noexcept {
    uint64_t bytes = 0;
    for (uint64_t c = it.first_call; c < it.first_call + it.n_calls; ++c)
      if (const weight* w = calls_[c].w; w && w->copy) bytes += w->copy->take_spared();
    return bytes;
  }

  void prepare_top(item& fused) {
    const top_form& top = fused.fused->top;
    if (!top.prepare) return;
    call* body = &calls_[fused.first_call];
    for (uint64_t i = 0; i < fused.n_calls; ++i)  // a kernel's own form is not the top form's
      if (body[i].w && body[i].w->packed && body[i].w->packed->how != &author_.packing) return;
    fused.top = top.prepare(body, fused.parts, host_.width());
    if (!fused.top.kept) return;
    fused.top_counter = count(body[fused.n_calls - 1].op, top.id);
    counters_[fused.top_counter].op = counters_[fused.counter].op;
    for (uint64_t i = 0; i < fused.n_calls; ++i) body[i].prepared = fused.top.kept.get();
  }
  bool takes_top(const item& it) const noexcept {
    return it.top.kept && step_.top_logits != 0 && step_.top_logits <= it.fused->top.max_top &&
           step_.n_outputs <= it.fused->top.max_outputs;
  }

  // The fused kernel for a composite, if the author has one and it computes what the body defines.
  const composite* choose(const bitnet_op& op, std::span<const bitnet_op> body, const weights& all,
                          roles& parts) const {
    const std::optional<roles> read = composite_reader(body).read(op.op);
    if (!read || !private_body(op, body, *read)) return nullptr;
    parts = *read;
    uint32_t format = BITNET_FORMAT_NONE;
    std::vector<const weight*> matrices;
    for (const bitnet_op& b : body)
      if (is_product(b.op)) matrices.push_back(&all.at(b.weights[0]).view);
    if (!matrices.empty()) format = matrices.back()->format;
    const auto fits = [&](const composite& c) {
      return std::all_of(matrices.begin(), matrices.end(), [&](const weight* w) {
        return (!c.fits || c.fits(*w)) && reads(c.packing, *w);
      });
    };
    for (const composite& c : author_.composites)
      if (c.op == op.op && (c.format == BITNET_FORMAT_NONE || c.format == format) && fits(c))
        return &c;
    return nullptr;
  }

  // True if only the composite's result is read outside its body, so that a fused kernel may leave
  // out all other values.
  bool private_body(const bitnet_op& op, std::span<const bitnet_op> body,
                    const roles& parts) const {
    const uint32_t result = op.outputs[0];
    const bitnet_op& last = parts.rope_q == roles::absent ? body.back() : body[parts.rope_q];
    if (result != last.outputs[0]) return false;
    const auto inside = [&](const bitnet_op& reader) {
      return &reader >= body.data() && &reader < body.data() + body.size();
    };
    for (const bitnet_op& b : body) {
      for (const uint32_t v : b.outputs) {
        if (v == BITNET_NONE || v == result) continue;
        if (graph_.external[v]) return false;
        for (const bitnet_op& reader : graph_.ops)
          if (!is_composite(reader) && !inside(reader) &&
              std::find(std::begin(reader.inputs), std::end(reader.inputs), v) !=
                  std::end(reader.inputs))
            return false;
      }
    }
    return true;
  }

  uint64_t count(uint32_t op, const std::string& id) {
    for (uint64_t i = 0; i < counters_.size(); ++i)
      if (*counters_[i].id == id) return i;
    counters_.emplace_back(op, id);
    return counters_.size() - 1;
  }

  void add_call(const bitnet_op& op, const weights& all) {
    call c{};
    c.op = op.op;
    c.w = op.weights[0] == BITNET_NONE ? nullptr : &all.at(op.weights[0]).view;
    const auto width = [&](uint32_t v) { return static_cast<uint64_t>(graph_.values[v].dims[1]); };
    const uint32_t shape = op.outputs[0] == BITNET_NONE ? op.inputs[0] : op.outputs[0];
    c.k = op.inputs[0] == BITNET_NONE ? c.w->k : width(op.inputs[0]);
    c.m = width(shape);
    c.k1 = op.inputs[1] == BITNET_NONE ? 0 : width(op.inputs[1]);
    std::copy(std::begin(op.ints), std::end(op.ints), c.ints);
    std::copy(std::begin(op.floats), std::end(op.floats), c.floats);
    c.step = &step_;
    c.author_data = author_.author_data;
    calls_.push_back(c);
    call_ops_.push_back(op);
    row_values_.push_back(shape);
  }

  uint64_t rows_of(uint32_t value) const noexcept {
    return rows_of(value, step_.n_tokens, step_.n_outputs);
  }
  uint64_t rows_of(uint32_t value, uint64_t tokens, uint64_t outputs) const noexcept {
    const int64_t rows = graph_.values[value].dims[0];
    return rows == BITNET_DIM_TOKENS    ? tokens
           : rows == BITNET_DIM_OUTPUTS ? outputs
                                        : static_cast<uint64_t>(rows);
  }

  // All values of a fused item live as long as the item runs.
  std::vector<lifetime> lifetimes(uint64_t tokens, uint64_t outputs) const {
    std::vector<lifetime> lives(graph_.values.size());
    for (uint64_t i = 0; i < items_.size(); ++i) {
      for (uint64_t c = items_[i].first_call; c < items_[i].first_call + items_[i].n_calls; ++c) {
        for (const uint32_t v : call_ops_[c].outputs) {
          if (v == BITNET_NONE) continue;
          lives[v].first = lives[v].last = i;
          const bitnet_value& value = graph_.values[v];
          // Rows and width are at most 2^31, so this cannot wrap.
          lives[v].bytes = rows_of(v, tokens, outputs) * static_cast<uint64_t>(value.dims[1]);
          lives[v].bytes = std::min(lives[v].bytes, uint64_t{1} << 60) * element_bytes(value.dtype);
        }
        for (const uint32_t v : call_ops_[c].inputs)
          if (v != BITNET_NONE) lives[v].last = i;
      }
    }
    for (uint64_t v = 0; v < lives.size(); ++v)
      if (graph_.external[v]) lives[v].bytes = 0;  // it lies where a binding says
    return lives;
  }

  bitnet_status measure(room& out, const reporter& report) const {
    out.lives = lifetimes(limits_.max_tokens, limits_.max_outputs);
    out.arena = place(out.lives);
    if (graph_.attends)  // at most 2^31 positions times 2^31 heads
      out.scratch_floats = uint64_t{limits_.max_blocks} * limits_.block_tokens * graph_.head_group;
    if (out.arena > uint64_t{1} << 46 || out.scratch_floats > uint64_t{1} << 40)
      return report.fail(
          BITNET_OUT_OF_MEMORY,
          "activations of %llu bytes exceed the address space; use a smaller context or batch",
          static_cast<unsigned long long>(out.arena));
    if (out.scratch_floats < author_.most_scores)
      out.scratch_floats = std::min(out.scratch_floats * limits_.max_tokens, author_.most_scores);
    for (const call& c : calls_)
      if (c.op == BITNET_OP_LINEAR_TERNARY || c.op == BITNET_OP_LINEAR_TERNARY_GROUPED ||
          c.op == BITNET_OP_LINEAR_DENSE)
        out.scratch_floats = std::max(out.scratch_floats, author_.worker_room_bytes / 4);
    out.scratch_floats = (out.scratch_floats + 15) / 16 * 16;
    out.scratch = 4 * out.scratch_floats * host_.width();
    uint64_t widest = 0;  // row that is quantised; at most 2^31 elements
    for (const call& c : calls_)
      if (c.op == BITNET_OP_ACT_QUANT_I8 || c.op == BITNET_OP_ACT_QUANT_I8_GROUPED)
        widest = std::max(widest, c.k);
    out.keep_bytes = (author_.worker_keep_bytes + author_.worker_row_bytes * widest + 63) / 64 * 64;
    out.keep = out.keep_bytes * host_.width();
    return BITNET_OK;
  }

  bitnet_status allocate(const reporter& report) {
    room needed;
    if (bitnet_status s = measure(needed, report); failed(s)) return s;
    width_ = host_.width();
    dealt_ = std::vector<pieces>(width_);
    arena_ = memory(needed.arena, host_.lent());
    scratch_floats_ = needed.scratch_floats;
    scratch_ = memory(needed.scratch, host_.lent());
    keep_bytes_ = needed.keep_bytes;
    keep_ = memory(needed.keep, host_.lent());
    for (uint32_t v = 0; v < needed.lives.size(); ++v)
      if (needed.lives[v].bytes != 0) point_at(v, arena_.data() + needed.lives[v].offset);
    return BITNET_OK;
  }

  void point_at(uint32_t value, void* data) noexcept {
    for (uint64_t c = 0; c < calls_.size(); ++c) {
      for (int i = 0; i < 2; ++i) {
        if (call_ops_[c].inputs[i] == value) calls_[c].in[i] = data;
        if (call_ops_[c].outputs[i] == value) calls_[c].out[i] = data;
      }
    }
  }

  bitnet_status check(const bitnet_step& step, const binding& on, const reporter& report) {
    if (step.window != 0 && (author_.device.attention_flags & BITNET_ATTENTION_WINDOW) == 0)
      return report.fail(BITNET_UNSUPPORTED,
                         "the step has an attention window, which this backend does not compute; "
                         "use another backend");
    return checker_.check(step, limits_, graph_, on.step_,
                          on.pool_ ? &on.pool_->storage() : nullptr, report);
  }

  static uint64_t units(const call& c) noexcept {
    switch (c.op) {
      case BITNET_OP_LINEAR_TERNARY:
      case BITNET_OP_LINEAR_TERNARY_GROUPED:
      case BITNET_OP_LINEAR_DENSE:
      case BITNET_OP_SHORT_CONV:
        return c.m;
      case BITNET_OP_DELTA_RULE:
        return static_cast<uint64_t>(c.ints[2]);
      case BITNET_OP_ATTN_PAGED:
        return c.rows * static_cast<uint64_t>(c.ints[2]);
      default:
        return c.rows;
    }
  }

  // Products take most of the time, so a worker that is free takes the next columns.
  void run_single(const primitive& kernel, const call& c, team& workers) const noexcept {
    const uint64_t all = units(c), grain = c.m == all ? column_grain : 1;
    if (is_product(c.op))
      workers.deal(all, grain, [&](const share& s) { kernel.run(c, s); });
    else
      kernel.run(c, workers.split(all, grain));
  }

  void run_as(uint32_t worker, uint32_t n, barrier& meeting, uint64_t cancel_token,
              std::atomic<uint64_t>& stop_after) noexcept {
    team workers(worker, n, meeting, dealt_.data(),
                 scratch_.size()
                     ? reinterpret_cast<float*>(scratch_.data()) + worker * scratch_floats_
                     : nullptr,
                 keep_.data() + worker * keep_bytes_, scratch_floats_);
    const bool measured = worker == 0 && (limits_.flags & BITNET_PROGRAM_PROFILE) != 0;
    for (uint64_t i = 0; i < items_.size(); ++i) {
      const item& it = items_[i];
      const uint64_t start = measured ? host_.now_ns() : 0;
      const call& c = calls_[it.first_call];
      const bool top = it.fused && takes_top(it);
      if (it.fused) {
        (top ? it.fused->top.run : it.fused->run)(&c, it.parts, workers);
      } else {
        run_single(*it.single, c, workers);
      }
      // Compare the item's number, not a flag: a worker that is late must not take the verdict on
      // the next item for its own.
      if (worker == 0 && host_.cancelled(cancel_token)) stop_after.store(i);
      workers.end(&c, it.parts);
      if (worker == 0) {
        counter& kernel = counters_[top ? it.top_counter : it.counter];
        kernel.calls.fetch_add(1, std::memory_order_relaxed);
        const uint64_t rows = c.op == BITNET_OP_EMBED_GATHER ? c.rows : 1;
        kernel.bytes.fetch_add(
            rows * (top ? it.top.weight_bytes : it.weight_bytes) - take_spared(it),
            std::memory_order_relaxed);
        if (measured) kernel.time_ns.fetch_add(host_.now_ns() - start, std::memory_order_relaxed);
      }
      if (stop_after.load() <= i) return;
    }
  }

  const definition& author_;
  const host host_;
  bitnet_program_options limits_{};
  graph graph_;
  std::vector<call> calls_;
  std::vector<bitnet_op> call_ops_;   // by call, for its value indices
  std::vector<uint32_t> row_values_;  // by call: the value whose rows the call has
  std::vector<item> items_;
  std::vector<counter> counters_;
  memory arena_, scratch_, keep_;
  std::vector<pieces> dealt_;  // by worker
  team_size team_size_;        // under running_
  const uint32_t cores_ = std::thread::hardware_concurrency();
  uint32_t width_ = 1;                            // workers with scratch
  uint64_t scratch_floats_ = 0, keep_bytes_ = 0;  // per worker
  step_view step_;
  step_checker checker_;
  std::vector<bitnet_op> ops_;      // of a query
  const binding* bound_ = nullptr;  // the calls' current binding
  std::mutex running_;
};

inline binding::~binding() {
  of_.forget(*this);
}

// program_build prepared everything; only the bounds are checked.
inline bitnet_status binding::prepare(const bitnet_prepare_request& request,
                                      const reporter& report) const {
  return check_size(request, of_.limits(), report);
}

}  // namespace bitnet::sdk
