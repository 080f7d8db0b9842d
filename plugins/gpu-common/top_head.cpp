#include "top_head.hpp"

#include <algorithm>
#include <utility>

#include "gpu-common/plan/parameters.hpp"
#include "gpu-common/plan/planner.hpp"
#include "gpu-common/program/program.hpp"
#include "names.hpp"

namespace bitnet::gpu {
namespace {

using sdk::failed;
using source = operand::source;

// With this status there is no copy of the head, and the full head runs: that is no failure.
bool is_no_room(bitnet_status s) noexcept {
  return s == BITNET_OUT_OF_DEVICE_MEMORY || s == BITNET_OUT_OF_MEMORY;
}

}  // namespace

bool head_copy::fits(const opened& device, const device_weight& w) {
  constexpr uint64_t fewest = 1024;  // rows; smaller heads stay in the caches
  const capabilities& can = device.capabilities();
  if (!can.has_top_head || w.tensor.desc.rank != 2 || w.view.m < fewest ||
      w.view.k > head_most_width || w.parts.size() != 1)
    return false;
  const std::string id = top_head_name(w.view.format, device.name);
  return !id.empty() && !device.is_disabled(id) &&
         bytes_of(device, w) <= std::min(can.max_binding_bytes, can.max_allocation_bytes);
}

uint64_t head_copy::bytes_of(const opened& device, const device_weight& w) {
  return device.align(4 * i8_row_words(w.view.k) * w.view.m) + 3 * sizeof(float) * w.view.m;
}

// The copy takes at most half of the free memory: other sessions and programs need some, too.
bitnet_status head_copy::allocate(uint64_t bytes, const sdk::reporter& report) {
  bitnet_device_status reported{};
  if (bitnet_status s = device_.driver->status(reported, report); failed(s)) return s;
  if ((reported.known & BITNET_STATUS_MEMORY) != 0 && reported.memory_free_bytes / 2 < bytes)
    return BITNET_OUT_OF_DEVICE_MEMORY;
  try {
    held_.emplace(device_.held_bytes, device_.lent);
    held_->add(bytes);
    device_.lent.take(bytes);  // checks that as much again is left
    device_.lent.give(bytes);
  } catch (const sdk::over_budget&) {
    return BITNET_OUT_OF_DEVICE_MEMORY;
  }
  const std::scoped_lock lock(device_.lock);
  return device_.driver->allocate(bytes, memory_place::device, memory_, report);
}

bitnet_status head_copy::make(const device_weight& w, bool& there, const sdk::reporter& report) {
  const std::scoped_lock guard(making_);
  there = memory_ != nullptr;
  if (asked_) return BITNET_OK;
  const uint64_t bytes = bytes_of(device_, w), norms = 3 * sizeof(float) * w.view.m;
  const range here(device_.watcher, "make the copy of the head, ", bytes, " bytes");
  bitnet_status s = allocate(bytes, report);
  if (!failed(s)) {
    codes_ = {memory_.get(), 0, 4 * i8_row_words(w.view.k) * w.view.m};
    norms_ = {memory_.get(), bytes - norms, norms};
    s = compute(w, report);
  }
  there = asked_ = !failed(s);
  if (there) return s;
  {
    const std::scoped_lock lock(device_.lock);
    memory_.reset();
  }
  held_.reset();
  if (!is_no_room(s)) return s;  // the next step tries again
  asked_ = true;
  device_.services.log(BITNET_LOG_INFO, device_.name,
                       "no room for " + std::to_string(bytes) +
                           " bytes of a copy of the output head: all logits are computed");
  return BITNET_OK;
}

// Runs on a queue of its own: other queues continue, and their timelines do not move.
bitnet_status head_copy::compute(const device_weight& w, const sdk::reporter& report) {
  std::unique_ptr<recording> commands;
  std::unique_ptr<queue> work;
  const auto start = [&] {
    const std::scoped_lock lock(device_.lock);
    const tiles fit = tiles_for(device_.about());
    command c;
    const kernel_spec spec{kernel_id::head_copy, {fit.group, fit.lanes, 0, w.view.format}};
    if (bitnet_status s = device_.kernels.get(spec, c.run, report); failed(s)) return s;
    c.bindings = {codes_, w.parts[0].place, codes_, norms_};
    c.params =
        words_of(head_copy_params{static_cast<uint32_t>(w.view.k), static_cast<uint32_t>(w.view.m),
                                  static_cast<uint32_t>(w.words)});
    const uint64_t teams = std::max(fit.group / fit.lanes, 1u);
    c.groups_x = static_cast<uint32_t>(
        std::min<uint64_t>((w.view.m + teams - 1) / teams, device_.capabilities().max_groups));
    if (bitnet_status s = device_.driver->record({&c, 1}, false, commands, report); failed(s))
      return s;
    if (bitnet_status s = device_.driver->make_queue(work, report); failed(s)) return s;
    return work->submit(*commands, 1, report);
  };
  bitnet_status s = start();
  if (!failed(s)) s = work->wait(1, UINT64_MAX, report);
  const std::scoped_lock lock(device_.lock);
  work.reset();
  commands.reset();
  return s;
}

bitnet_status head_scratch::take(opened& device, const device_weight& w, uint32_t outputs,
                                 bool lists, bool& there, const sdk::reporter& report) {
  there = memory_.get() != nullptr;
  if (asked_) return BITNET_OK;
  const uint64_t rows = std::min(outputs, head_most_outputs);
  const uint64_t states = 4 * head_state_words(w.view.k) * rows;
  const uint64_t counts = 4 * rows * head_count_words, bounds = 8 * rows * w.view.m;
  const uint64_t found = lists ? bounds : 0;
  const uint64_t first = device.align(states), second = first + device.align(counts);
  const uint64_t third = second + device.align(bounds);
  bitnet_status s = BITNET_OUT_OF_DEVICE_MEMORY;
  try {
    s = device.pool.take(third + found, memory_place::device, memory_, report);
  } catch (const sdk::over_budget&) {
    s = BITNET_OUT_OF_DEVICE_MEMORY;
  }
  there = !failed(s);
  if (!there && !is_no_room(s)) return s;
  asked_ = true;
  states_ = {memory_.get(), 0, states};
  counts_ = {memory_.get(), first, counts};
  bounds_ = {memory_.get(), second, bounds};
  found_ = {memory_.get(), third, found};
  return BITNET_OK;
}

bitnet_status steps_on::asked_by(const bitnet_step& step, logits& out,
                                 const sdk::reporter& report) {
  out = logits::all;
  const device_weight* lm_head = of_.plan_.lm_head;
  if (!lm_head || step.top_logits == 0 || step.top_logits > head_most_top || step.n_outputs == 0 ||
      step.n_outputs > head_most_outputs)
    return BITNET_OK;
  bool there = false;
  // Allocates the small buffers first: without room for them the copy would not be used.
  if (bitnet_status s = top_head_.take(device_, *lm_head, of_.limits_.max_outputs, of_.plan_.lists,
                                       there, report);
      failed(s) || !there)
    return s;
  if (bitnet_status s = lm_head->copy->make(*lm_head, there, report); failed(s)) return s;
  if (there) out = logits::largest;
  return BITNET_OK;
}

// True if the value is the step's logits and no op reads it.
bool planner::makes_logits(uint32_t value) const {
  bool out = false;
  for (const bitnet_port& p : graph_.ports) {
    if (p.value != value) continue;
    if (p.role != BITNET_PORT_LOGITS) return false;
    out = true;
  }
  for (const bitnet_op& op : graph_.ops)
    if (std::ranges::find(op.inputs, value) != std::end(op.inputs)) return false;
  return out;
}

// Plans the nodes that compute `op` in steps that ask for the largest logits; `full` computes all.
void planner::top_head(const bitnet_op& op, const node& full) {
  const auto k = static_cast<uint32_t>(full.weight->view.k);
  const auto m = static_cast<uint32_t>(full.weight->view.m);
  const auto add = [&](kernel_id id, gpu::grid grid, uint64_t columns,
                       std::vector<operand> operands, const parameters& params) {
    node n = start(id, op, op.outputs[0], grid, columns);
    n.of = logits::largest;
    n.name = top_head_name(full.weight->view.format, device_.name);
    n.spec.constants[1] = tiles_.lanes;
    n.weight_bytes = 0;
    n.operands = std::move(operands);
    n.params = params;
    out_.nodes.push_back(std::move(n));
  };
  const operand states{source::head_states}, counts{source::head_counts},
      bounds{source::head_bounds};
  const auto changed = [](operand o) {
    o.written = true;
    return o;
  };
  add(kernel_id::head_state, grid::rows, 1, {reads(op.inputs[0]), changed(states), changed(counts)},
      head_state_params{full.rows, k});
  add(kernel_id::head_approximate, grid::threads, m,
      {{source::head_codes}, {source::head_norms}, states, changed(counts), changed(bounds)},
      head_approximate_params{full.rows, k, m});
  out_.nodes.back().weight_bytes = head_copy::bytes_of(device_, *full.weight);
  add(kernel_id::head_count, grid::threads, m, {bounds, changed(counts)},
      head_count_params{full.rows, m});
  const auto is_list = [](const bitnet_port& p) { return p.role == BITNET_PORT_LARGEST; };
  out_.lists = std::ranges::any_of(graph_.ports, is_list);
  const operand found{source::head_found}, largest{source::largest};
  add(kernel_id::head_exact, grid::threads, m,
      {reads(op.inputs[0]),
       {source::matrix},
       bounds,
       out_.lists ? changed(counts) : counts,
       writes(op.outputs[0]),
       out_.lists ? changed(found) : bounds,
       out_.lists ? changed(largest) : bounds},
      head_exact_params{full.rows, k, m, static_cast<uint32_t>(full.weight->words)});
  out_.nodes.back().spec.constants[3] = full.weight->view.format;
  out_.lm_head = full.weight;
}

}  // namespace bitnet::gpu
