#include "compute/steps.hpp"

#include <algorithm>

namespace bitnet::compute {

attempt<program> program::build(const device& d, const graph& g,
                                std::span<bitnet_weights* const> weights,
                                const bitnet_program_options& options, uint64_t cancel_token) {
  const bitnet_backend_v0& t = d.table();
  const bitnet_graph seen = g.view();
  bitnet_build_request request{};
  request.struct_size = sizeof request;
  request.n_weights = static_cast<uint32_t>(weights.size());
  request.graph = &seen;
  request.weights = weights.data();
  request.options = &options;
  request.cancel_token = cancel_token;
  auto made = take<bitnet_program>("program_build", t.program_destroy, [&](auto** out, auto* err) {
    return t.program_build(d.get(), &request, out, err);
  });
  if (!made) return std::unexpected(std::move(made.error()));
  return program(t, std::move(*made));
}

attempt<std::vector<bitnet_kernel_stat>> program::stats() const {
  uint32_t count = 0;
  std::vector<bitnet_kernel_stat> out;
  const auto ask = [&]() -> attempt<void> {
    if (auto ok = call("program_stats",
                       [&](bitnet_error* err) {
                         return table_->program_stats(get(), out.empty() ? nullptr : out.data(),
                                                      sizeof(bitnet_kernel_stat), &count, err);
                       });
        !ok)
      return ok;
    return sane("program_stats", bitnet_wrong_count(count));
  };
  if (auto ok = ask(); !ok) return std::unexpected(std::move(ok.error()));
  out.resize(count);
  for (bitnet_kernel_stat& s : out) s.struct_size = sizeof s;
  if (auto ok = ask(); !ok) return std::unexpected(std::move(ok.error()));
  out.resize(std::min<std::size_t>(count, out.size()));
  for (const bitnet_kernel_stat& s : out)
    if (auto ok = sane("program_stats", bitnet_wrong_stat(&s)); !ok)
      return std::unexpected(std::move(ok.error()));
  return out;
}

uint64_t port_bytes(const graph& g, const bitnet_port& p, const bitnet_program_options& bounds) {
  uint64_t rows = bounds.max_tokens;
  uint64_t columns = 1, element = sizeof(int32_t);
  if (p.role == BITNET_PORT_BLOCK_TABLES) {
    rows = bounds.max_sequences;
    columns = bounds.max_blocks;
  } else if (p.role == BITNET_PORT_STATES) {
    rows = bounds.max_sequences;
  } else if (p.role == BITNET_PORT_OUTPUT_ROWS) {
    rows = bounds.max_outputs;
  } else if (p.role == BITNET_PORT_LARGEST) {
    rows = bounds.max_outputs;
    element = sizeof(bitnet_largest);
  } else if (p.value != BITNET_NONE) {
    const bitnet_value& v = g.values[p.value];
    if (v.dims[0] > 0) rows = static_cast<uint64_t>(v.dims[0]);
    if (v.dims[0] == BITNET_DIM_OUTPUTS) rows = bounds.max_outputs;
    columns = static_cast<uint64_t>(v.dims[1]);
    if (v.dtype == BITNET_DTYPE_I8) element = 1;
    if (v.dtype == BITNET_DTYPE_F16) element = 2;
  }
  return rows * columns * element;
}

attempt<void> binding::add_buffer(const device& d, uint32_t role, uint64_t bytes) {
  const bitnet_backend_v0& t = d.table();
  const bool out =
      role == BITNET_PORT_VALUE_OUT || role == BITNET_PORT_LOGITS || role == BITNET_PORT_LARGEST;
  bitnet_buffer_request request{};
  request.struct_size = sizeof request;
  request.usage = out ? BITNET_BUFFER_HOST_READS : BITNET_BUFFER_HOST_WRITES;
  request.bytes = bytes;
  auto made = take<bitnet_buffer>("buffer_create", t.buffer_destroy, [&](auto** to, auto* err) {
    return t.buffer_create(d.get(), &request, to, err);
  });
  if (!made) return std::unexpected(std::move(made.error()));
  void* mapped = nullptr;
  void* again = nullptr;
  for (void** to : {&mapped, &again})
    if (auto ok = call("buffer_map",
                       [&](bitnet_error* err) { return t.buffer_map(made->get(), to, err); });
        !ok)
      return ok;
  const char* wrong = bitnet_wrong_mapping(mapped, again, bytes, d.buffer_alignment_bytes());
  for (const port_memory& other : memory_)
    if (wrong == nullptr) wrong = bitnet_wrong_overlap(other.address, other.bytes, mapped, bytes);
  if (auto ok = sane("buffer_map", wrong); !ok) return ok;
  memory_.push_back({role, mapped, bytes});
  buffers_.push_back(std::move(*made));
  return {};
}

attempt<binding> binding::make(const device& d, const program& p, const graph& g,
                               const bitnet_program_options& bounds, bitnet_kv_pool* pool) {
  const bitnet_backend_v0& t = d.table();
  binding out(t);
  std::vector<bitnet_bound> bound;
  for (const bitnet_port& port : g.ports) {
    const uint64_t bytes = port_bytes(g, port, bounds);
    if (auto ok = out.add_buffer(d, port.role, bytes); !ok)
      return std::unexpected(std::move(ok.error()));
    bound.push_back({out.buffers_.back().get(), 0, bytes});
  }
  bitnet_bind_request request{};
  request.struct_size = sizeof request;
  request.bound_size = sizeof(bitnet_bound);
  request.n_bound = static_cast<uint32_t>(bound.size());
  request.bound = bound.data();
  request.kv_pool = pool;
  auto made = take<bitnet_binding>("program_bind", t.binding_destroy, [&](auto** to, auto* err) {
    return t.program_bind(p.get(), &request, to, err);
  });
  if (!made) return std::unexpected(std::move(made.error()));
  out.binding_ = std::move(*made);
  return out;
}

attempt<void> binding::prepare(uint32_t n_tokens, uint32_t n_outputs, uint32_t n_sequences,
                               uint64_t cancel_token) {
  bitnet_prepare_request request{};
  request.struct_size = sizeof request;
  request.n_tokens = n_tokens;
  request.n_outputs = n_outputs;
  if (table_->abi_minor >= 2) request.n_sequences = n_sequences;
  request.cancel_token = cancel_token;
  return call("binding_prepare",
              [&](bitnet_error* err) { return table_->binding_prepare(get(), &request, err); });
}

attempt<queue> queue::make(const device& d, int32_t priority) {
  const bitnet_backend_v0& t = d.table();
  bitnet_queue_request request{};
  request.struct_size = sizeof request;
  request.priority = priority;
  auto made = take<bitnet_queue>("queue_create", t.queue_destroy, [&](auto** out, auto* err) {
    return t.queue_create(d.get(), &request, out, err);
  });
  if (!made) return std::unexpected(std::move(made.error()));
  return queue(t, std::move(*made));
}

attempt<void> queue::submit(bitnet_step step) {
  step.struct_size = sizeof step;
  step.signal_value = timeline_ + 1;
  auto ok = call("queue_submit",
                 [&](bitnet_error* err) { return table_->queue_submit(queue_.get(), &step, err); });
  if (ok) ++timeline_;
  return ok;
}

attempt<void> queue::copy(bitnet_kv_pool* pool, std::span<const uint32_t> from,
                          std::span<const uint32_t> to) {
  auto ok = call("kv_copy", [&](bitnet_error* err) {
    return table_->kv_copy(queue_.get(), pool, from.data(), to.data(),
                           static_cast<uint32_t>(from.size()), timeline_ + 1, err);
  });
  if (ok) ++timeline_;
  return ok;
}

attempt<void> queue::write_out(bitnet_kv_pool* pool, std::span<const uint32_t> blocks,
                               std::span<std::byte> memory) {
  auto ok = call("kv_export", [&](bitnet_error* err) {
    return table_->kv_export(queue_.get(), pool, blocks.data(),
                             static_cast<uint32_t>(blocks.size()), memory.data(), memory.size(),
                             timeline_ + 1, err);
  });
  if (ok) ++timeline_;
  return ok;
}

attempt<void> queue::read_in(bitnet_kv_pool* pool, std::span<const uint32_t> blocks,
                             std::span<const std::byte> memory) {
  auto ok = call("kv_import", [&](bitnet_error* err) {
    return table_->kv_import(queue_.get(), pool, blocks.data(),
                             static_cast<uint32_t>(blocks.size()), memory.data(), memory.size(),
                             timeline_ + 1, err);
  });
  if (ok) ++timeline_;
  return ok;
}

attempt<void> queue::wait(uint64_t timeout_ns) {
  uint64_t reached = 0;
  if (auto ok = call("queue_wait",
                     [&](bitnet_error* err) {
                       return table_->queue_wait(queue_.get(), timeline_, timeout_ns, err);
                     });
      !ok)
    return ok;
  if (auto ok =
          call("queue_poll",
               [&](bitnet_error* err) { return table_->queue_poll(queue_.get(), &reached, err); });
      !ok)
    return ok;
  return sane("queue_poll", bitnet_wrong_timeline(reached, timeline_));
}

}  // namespace bitnet::compute
