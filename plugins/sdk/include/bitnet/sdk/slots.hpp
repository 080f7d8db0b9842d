// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Every slot of the contract's table over C++ objects: checks of arguments, the guard around the
// call, and ownership.
//
// Objects  names the classes behind the handles: backend, device, buffer, weights, kv_pool,
//          program, binding and queue. Their members do the work and have the names used below.
//          Their destructors wait for running work.
// Errors   members fail through the reporter, which knows the slot's name.
// Threads  as the contract says of the slots; nothing is locked here.

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "bitnet/abi/backend.h"
#include "bitnet/sdk/compute/step.hpp"
#include "bitnet/sdk/compute/tensor.hpp"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/handle.hpp"
#include "bitnet/sdk/received.hpp"
#include "bitnet/sdk/table.hpp"

namespace bitnet::sdk {

// True if the device can report its status.
template <class Device>
concept reports_status = requires(Device& d, bitnet_device_status& out, const reporter& report) {
  d.status(out, report);
};

template <class Objects>
struct slots {
  using backends = handle<bitnet_backend, typename Objects::backend>;
  using devices = handle<bitnet_device, typename Objects::device>;
  using buffers = handle<bitnet_buffer, typename Objects::buffer>;
  using weight_sets = handle<bitnet_weights, typename Objects::weights>;
  using kv_pools = handle<bitnet_kv_pool, typename Objects::kv_pool>;
  using programs = handle<bitnet_program, typename Objects::program>;
  using bindings = handle<bitnet_binding, typename Objects::binding>;
  using queues = handle<bitnet_queue, typename Objects::queue>;

  // All slots except `self` and query_interface.
  static bitnet_backend_v0 table() noexcept {
    bitnet_backend_v0 out{};
    out.info = info;
    out.close = destroy<backends>;
    out.device_count = device_count;
    out.device_info = device_info;
    out.kernels = kernels;
    out.device_open = device_open;
    out.device_close = destroy<devices>;
    out.buffer_create = buffer_create;
    out.buffer_map = buffer_map;
    out.buffer_destroy = destroy<buffers>;
    out.weight_plan = weight_plan;
    out.weights_create = weights_create;
    out.weight_write = weight_write;
    out.weight_alias = weight_alias;
    out.weight_seal = weight_seal;
    out.weights_destroy = destroy<weight_sets>;
    out.graph_query = graph_query;
    out.program_build = program_build;
    out.program_bind = program_bind;
    out.binding_prepare = binding_prepare;
    out.binding_destroy = destroy<bindings>;
    out.program_stats = program_stats;
    out.program_destroy = destroy<programs>;
    out.kv_pool_create = kv_pool_create;
    out.kv_copy = kv_copy;
    out.kv_export = kv_export;
    out.kv_import = kv_import;
    out.kv_pool_destroy = destroy<kv_pools>;
    out.queue_create = queue_create;
    out.queue_submit = queue_submit;
    out.queue_wait = queue_wait;
    out.queue_poll = queue_poll;
    out.queue_destroy = destroy<queues>;
    out.quiesce = quiesce;
    // Optional: a device that has nothing to report has no such member, and the slot stays empty.
    if constexpr (reports_status<typename Objects::device>) out.device_status = device_status;
    return out;
  }

 private:
  static bitnet_status no_out(const reporter& report) {
    return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
  }

  // make(std::unique_ptr<Object>&) makes the object; the caller gets a handle of it.
  template <class Handles, class Handle, class Make>
  static bitnet_status give(Handle** out, const reporter& report, const Make& make) {
    if (!out) return no_out(report);
    decltype(Handles::take(nullptr)) made;
    if (bitnet_status s = make(made); failed(s)) return s;
    *out = Handles::give(std::move(made));
    return BITNET_OK;
  }

  template <class Handles, class Handle>
  static void destroy(Handle* h) {
    Handles::take(h).reset();
  }

  // get(Struct&) fills a struct of which the caller may know a shorter form.
  template <class Struct, class Get>
  static bitnet_status answer(Struct* out, const reporter& report, const Get& get) {
    if (!out) return no_out(report);
    Struct filled{};
    if (bitnet_status s = get(filled); failed(s)) return s;
    filled.struct_size = sizeof filled;
    hand_over(filled, out);
    return BITNET_OK;
  }

  // Copies as many of `all` as the caller has room for, in the caller's size of the struct; unknown
  // members become 0. `count` gets the number of all.
  template <class Struct>
  static void hand_over_all(std::vector<Struct>& all, Struct* out, uint32_t out_size,
                            uint32_t* count) {
    for (uint64_t i = 0; i < std::min<uint64_t>(*count, all.size()); ++i) {
      all[i].struct_size = out_size;
      uint8_t* to = reinterpret_cast<uint8_t*>(out) + i * out_size;
      std::memset(to, 0, out_size);
      std::memcpy(to, &all[i], std::min<uint64_t>(out_size, sizeof all[i]));
    }
    *count = static_cast<uint32_t>(all.size());
  }
  static bool has_room(const void* out, uint32_t out_size, const uint32_t* count) {
    return count && (*count == 0 || (out && out_size >= sizeof(uint32_t)));
  }

  // ---- backend and devices ----------------------------------------------------------------------

  static bitnet_status info(bitnet_backend* self, bitnet_backend_info* out, bitnet_error* err) {
    return guarded(err, "info", [&](const reporter& report) {
      return answer(out, report, [&](bitnet_backend_info& to) {
        to = backends::get(self)->info();
        return BITNET_OK;
      });
    });
  }

  static bitnet_status device_count(bitnet_backend* self, uint32_t* out, bitnet_error* err) {
    return guarded(err, "device_count", [&](const reporter& report) {
      return out ? backends::get(self)->device_count(*out, report) : no_out(report);
    });
  }

  static bitnet_status device_info(bitnet_backend* self, uint32_t index, bitnet_device_info* out,
                                   bitnet_error* err) {
    return guarded(err, "device_info", [&](const reporter& report) {
      return answer(out, report, [&](bitnet_device_info& to) {
        return backends::get(self)->device_info(index, to, report);
      });
    });
  }

  static bitnet_status kernels(bitnet_backend* self, uint32_t index, bitnet_kernel_info* out,
                               uint32_t out_size, uint32_t* count, bitnet_error* err) {
    return guarded(err, "kernels", [&](const reporter& report) {
      if (!has_room(out, out_size, count))
        return report.fail(BITNET_INVALID_ARGUMENT,
                           "expected an array for the kernels and its length; found NULL");
      std::vector<bitnet_kernel_info> all;
      if (bitnet_status s = backends::get(self)->kernels(index, all, report); failed(s)) return s;
      hand_over_all(all, out, out_size, count);
      return BITNET_OK;
    });
  }

  static bitnet_status device_open(bitnet_backend* self, const bitnet_device_request* request,
                                   bitnet_device** out, bitnet_error* err) {
    return guarded(err, "device_open", [&](const reporter& report) {
      bitnet_device_request known{};
      if (bitnet_status s = receive(request, sizeof known, known, "device request", report);
          failed(s))
        return s;
      return give<devices>(
          out, report, [&](auto& made) { return backends::get(self)->open(known, made, report); });
    });
  }

  static bitnet_status device_status(bitnet_device* device, bitnet_device_status* out,
                                     bitnet_error* err) {
    return guarded(err, "device_status", [&](const reporter& report) {
      return answer(out, report, [&](bitnet_device_status& to) {
        return devices::get(device)->status(to, report);
      });
    });
  }

  static bitnet_status quiesce(bitnet_backend* self, uint64_t timeout_ns, bitnet_error* err) {
    return guarded(err, "quiesce", [&](const reporter& report) {
      return backends::get(self)->quiesce(timeout_ns, report);
    });
  }

  // ---- buffers and weights -----------------------------------------------------------------

  static bitnet_status buffer_create(bitnet_device* device, const bitnet_buffer_request* request,
                                     bitnet_buffer** out, bitnet_error* err) {
    return guarded(err, "buffer_create", [&](const reporter& report) {
      bitnet_buffer_request known{};
      if (bitnet_status s = receive(request, sizeof known, known, "buffer request", report);
          failed(s))
        return s;
      if (known.bytes == 0)
        return report.fail(BITNET_INVALID_ARGUMENT, "a buffer of 0 bytes; expected 1 or more");
      if (!understood(known.usage, 0))
        return report.fail(BITNET_UNSUPPORTED, "this backend does not know usage %#x of a buffer",
                           known.usage);
      if (known.alignment_bytes & (known.alignment_bytes - 1))
        return report.fail(BITNET_INVALID_ARGUMENT,
                           "alignment %llu of a buffer is not a power of two",
                           static_cast<unsigned long long>(known.alignment_bytes));
      return give<buffers>(out, report, [&](auto& made) {
        return devices::get(device)->make_buffer(known, made, report);
      });
    });
  }

  static bitnet_status buffer_map(bitnet_buffer* buffer, void** out, bitnet_error* err) {
    return guarded(err, "buffer_map", [&](const reporter& report) {
      if (!buffer || !out) return report.fail(BITNET_INVALID_ARGUMENT, "buffer or out is NULL");
      *out = buffers::get(buffer)->data();
      return BITNET_OK;
    });
  }

  static bitnet_status weight_plan(bitnet_device* device, const bitnet_tensor_desc* desc,
                                   bitnet_weight_plan* out, bitnet_error* err) {
    return guarded(err, "weight_plan", [&](const reporter& report) {
      return answer(out, report, [&](bitnet_weight_plan& to) {
        return devices::get(device)->plan(desc, to, report);
      });
    });
  }

  static bitnet_status weights_create(bitnet_device* device, const bitnet_weights_request* request,
                                      bitnet_weights** out, bitnet_error* err) {
    return guarded(err, "weights_create", [&](const reporter& report) {
      bitnet_weights_request known{};
      if (bitnet_status s = receive(request, sizeof known, known, "weights request", report);
          failed(s))
        return s;
      if (known.reserved_0 != 0)
        return report.fail(BITNET_UNSUPPORTED,
                           "reserved_0 of the weights request is not 0; update the backend");
      return give<weight_sets>(out, report, [&](auto& made) {
        made = devices::get(device)->make_weights(known.cancel_token);
        return made->create(known.descs, known.desc_size, known.n, scales_are::given, report);
      });
    });
  }

  static bitnet_status weight_write(bitnet_weights* weights, uint32_t index, uint64_t offset,
                                    const void* data, uint64_t bytes, bitnet_error* err) {
    return guarded(err, "weight_write", [&](const reporter& report) {
      return weight_sets::get(weights)->write(index, offset, data, bytes, report);
    });
  }

  static bitnet_status weight_alias(bitnet_weights* weights, uint32_t index, const void* data,
                                    uint64_t bytes, bitnet_error* err) {
    return guarded(err, "weight_alias", [&](const reporter& report) {
      return weight_sets::get(weights)->alias(index, data, bytes, report);
    });
  }

  static bitnet_status weight_seal(bitnet_weights* weights, uint32_t index, bitnet_error* err) {
    return guarded(err, "weight_seal", [&](const reporter& report) {
      return weight_sets::get(weights)->seal(index, report);
    });
  }

  // ---- programs ---------------------------------------------------------------------------------

  static bitnet_status graph_query(bitnet_device* device, const bitnet_query_request* request,
                                   uint32_t* levels, bitnet_graph_estimate* out,
                                   bitnet_error* err) {
    return guarded(err, "graph_query", [&](const reporter& report) {
      bitnet_query_request known{};
      if (bitnet_status s = receive(request, sizeof known, known, "query request", report);
          failed(s))
        return s;
      if (known.reserved_0 != 0)
        return report.fail(BITNET_UNSUPPORTED,
                           "reserved_0 of the query request is not 0; update the backend");
      if (!levels || !out) return report.fail(BITNET_INVALID_ARGUMENT, "levels or out is NULL");
      std::vector<uint32_t> all;
      bitnet_graph_estimate estimate{};
      if (bitnet_status s = devices::get(device)->query(known, all, estimate, report); failed(s))
        return s;
      std::copy(all.begin(), all.end(), levels);
      estimate.struct_size = sizeof estimate;
      hand_over(estimate, out);
      return BITNET_OK;
    });
  }

  static bitnet_status program_build(bitnet_device* device, const bitnet_build_request* request,
                                     bitnet_program** out, bitnet_error* err) {
    return guarded(err, "program_build", [&](const reporter& report) {
      bitnet_build_request known{};
      if (bitnet_status s = receive(request, sizeof known, known, "build request", report);
          failed(s))
        return s;
      if (known.n_weights != 0 && !known.weights)
        return report.fail(BITNET_INVALID_ARGUMENT, "expected a list of %u weights; found NULL",
                           known.n_weights);
      weight_list<typename Objects::weights> all;
      for (uint32_t i = 0; i < known.n_weights; ++i) {
        if (!known.weights[i])
          return report.fail(BITNET_INVALID_ARGUMENT, "weights %u of %u are NULL", i,
                             known.n_weights);
        all.add(*weight_sets::get(known.weights[i]));
      }
      return give<programs>(out, report, [&](auto& made) {
        made = devices::get(device)->make_program();
        return made->build(known.graph, all, known.options, known.cancel_token, report);
      });
    });
  }

  static bitnet_status program_bind(bitnet_program* program, const bitnet_bind_request* request,
                                    bitnet_binding** out, bitnet_error* err) {
    return guarded(err, "program_bind", [&](const reporter& report) {
      if (!program) return report.fail(BITNET_INVALID_ARGUMENT, "the program is NULL");
      return give<bindings>(out, report, [&](auto& made) {
        auto& steps = *programs::get(program);
        made = std::make_unique<typename Objects::binding>(steps);
        const auto see = [](bitnet_buffer* b) {
          if (!b) return bound_memory{};
          auto& memory = *buffers::get(b);
          return bound_memory{memory.data(), memory.size()};
        };
        const auto pool_of = [](bitnet_kv_pool* pool) { return kv_pools::get(pool); };
        return steps.bind(request, *made, see, pool_of, report);
      });
    });
  }

  static bitnet_status binding_prepare(bitnet_binding* binding,
                                       const bitnet_prepare_request* request, bitnet_error* err) {
    return guarded(err, "binding_prepare", [&](const reporter& report) {
      bitnet_prepare_request known{};
      constexpr uint64_t least = offsetof(bitnet_prepare_request, n_sequences);
      if (bitnet_status s = receive(request, least, known, "prepare request", report); failed(s))
        return s;
      if (known.reserved_0 != 0 || known.reserved_1 != 0)
        return report.fail(BITNET_UNSUPPORTED,
                           "a reserved member of the prepare request is not 0; update the backend");
      return bindings::get(binding)->prepare(known, report);
    });
  }

  static bitnet_status program_stats(bitnet_program* program, bitnet_kernel_stat* out,
                                     uint32_t out_size, uint32_t* count, bitnet_error* err) {
    return guarded(err, "program_stats", [&](const reporter& report) {
      if (!has_room(out, out_size, count))
        return report.fail(BITNET_INVALID_ARGUMENT,
                           "expected an array for the counts and its length; found NULL");
      std::vector<bitnet_kernel_stat> all = programs::get(program)->stats();
      hand_over_all(all, out, out_size, count);
      return BITNET_OK;
    });
  }

  // ---- keys and values --------------------------------------------------------------------------

  static bitnet_status kv_pool_create(bitnet_device* device, const bitnet_kv_config* config,
                                      bitnet_kv_pool** out, bitnet_error* err) {
    return guarded(err, "kv_pool_create", [&](const reporter& report) {
      return give<kv_pools>(out, report, [&](auto& made) {
        return devices::get(device)->make_pool(config, made, report);
      });
    });
  }

  static bitnet_status kv_copy(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* from,
                               const uint32_t* to, uint32_t n, uint64_t signal, bitnet_error* err) {
    return guarded(err, "kv_copy", [&](const reporter& report) {
      return queues::get(queue)->copy(*kv_pools::get(pool), from, to, n, signal, report);
    });
  }

  static bitnet_status kv_export(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* blocks,
                                 uint32_t n, void* out, uint64_t bytes, uint64_t signal,
                                 bitnet_error* err) {
    return guarded(err, "kv_export", [&](const reporter& report) {
      return queues::get(queue)->write_out(*kv_pools::get(pool), blocks, n,
                                           static_cast<uint8_t*>(out), bytes, signal, report);
    });
  }

  static bitnet_status kv_import(bitnet_queue* queue, bitnet_kv_pool* pool, const uint32_t* blocks,
                                 uint32_t n, const void* data, uint64_t bytes, uint64_t signal,
                                 bitnet_error* err) {
    return guarded(err, "kv_import", [&](const reporter& report) {
      return queues::get(queue)->read_in(*kv_pools::get(pool), blocks, n,
                                         static_cast<const uint8_t*>(data), bytes, signal, report);
    });
  }

  // ---- queues -----------------------------------------------------------------------------------

  static bitnet_status queue_create(bitnet_device* device, const bitnet_queue_request* request,
                                    bitnet_queue** out, bitnet_error* err) {
    return guarded(err, "queue_create", [&](const reporter& report) {
      bitnet_queue_request known{};
      if (bitnet_status s = receive(request, sizeof known, known, "queue request", report);
          failed(s))
        return s;
      return give<queues>(out, report, [&](auto& made) {
        return devices::get(device)->make_queue(known, made, report);
      });
    });
  }

  static bitnet_status queue_submit(bitnet_queue* queue, const bitnet_step* step,
                                    bitnet_error* err) {
    return guarded(err, "queue_submit", [&](const reporter& report) {
      bitnet_step known{};
      if (bitnet_status s = receive(step, offsetof(bitnet_step, top_logits), known, "step", report);
          failed(s))
        return s;
      if (!known.binding)
        return report.fail(BITNET_INVALID_ARGUMENT, "the binding of the step is NULL");
      if (known.reserved_0 != 0)
        return report.fail(BITNET_UNSUPPORTED,
                           "reserved_0 of the step is not 0; update the backend");
      return queues::get(queue)->submit(known, *bindings::get(known.binding), report);
    });
  }

  static bitnet_status queue_wait(bitnet_queue* queue, uint64_t value, uint64_t timeout_ns,
                                  bitnet_error* err) {
    return guarded(err, "queue_wait", [&](const reporter& report) {
      return queues::get(queue)->wait(value, timeout_ns, report);
    });
  }

  static bitnet_status queue_poll(bitnet_queue* queue, uint64_t* out, bitnet_error* err) {
    return guarded(err, "queue_poll", [&](const reporter& report) {
      if (!out) return no_out(report);
      uint64_t value = 0;
      if (bitnet_status s = queues::get(queue)->poll(value, report); failed(s)) return s;
      *out = value;
      return BITNET_OK;
    });
  }
};

}  // namespace bitnet::sdk
