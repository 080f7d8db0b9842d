// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Tier 0: a whole backend for whoever has kernels on host memory.
//
// The author fills a `definition` (kernel.hpp) with primitive kernels and, if there are any, fused
// ones; the interpreter provides every slot of the table: weights, buffers, KV pool, programs,
// queue. Steps run on the host's threads inside queue_submit, so nothing is ever pending
// afterwards.
//
//   bitnet_status BITNET_BACKEND_ENTRY(host, request, out, err) {
//     return bitnet::sdk::open_interpreter(host, request, out, err, describe);
//   }
//   void describe(const bitnet_open_request& request, bitnet::sdk::definition& d) { ... }
//
// Threads  as the contract says; in addition, steps of one program wait for each other.
// Errors   whatever comes over the edge is checked before it is used: a malformed graph, tensor or
//          step is BITNET_INVALID_ARGUMENT, never undefined behaviour.

#include <algorithm>
#include <atomic>
#include <charconv>
#include <memory>

#include "bitnet/abi/backend.h"
#include "bitnet/abi/tuning.h"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/handle.hpp"
#include "bitnet/sdk/host.hpp"
#include "bitnet/sdk/interpreter/kernel.hpp"
#include "bitnet/sdk/interpreter/kv_pool.hpp"
#include "bitnet/sdk/interpreter/program.hpp"
#include "bitnet/sdk/interpreter/weights.hpp"
#include "bitnet/sdk/table.hpp"

namespace bitnet::sdk {

using describe_backend = void (*)(const bitnet_open_request& request, definition& out);

namespace interpreter {

struct backend {
  explicit backend(const bitnet_host_v0* services) : host_services(services) {}
  host host_services;
  definition author;
};
struct queue {
  const definition* author;
  std::atomic<uint64_t> timeline{0};
};

using backends = handle<bitnet_backend, backend>;
using devices = handle<bitnet_device, backend>;  // there is one device, so the backend is it
using buffers = handle<bitnet_buffer, memory>;
using weight_sets = handle<bitnet_weights, weight_set>;
using kv_pools = handle<bitnet_kv_pool, kv_pool>;
using programs = handle<bitnet_program, program>;
using queues = handle<bitnet_queue, queue>;

inline bitnet_status no_such_device(const reporter& report, uint32_t index) {
  return report.fail(BITNET_INVALID_ARGUMENT, "device %u: there is only device 0", index);
}

inline bitnet_status info(bitnet_backend* self, bitnet_backend_info* out, bitnet_error* err) {
  return guarded(err, "info", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    const definition& d = backends::get(self)->author;
    hand_over(bitnet_backend_info{.struct_size = sizeof *out,
                                  .life_flags = d.life_flags,
                                  .name = to_str(d.name),
                                  .version = to_str(d.version),
                                  .vendor = to_str(d.vendor),
                                  .license = to_str(d.license),
                                  .driver = to_str("")},
              out);
    return BITNET_OK;
  });
}

inline void close(bitnet_backend* self) {
  backends::take(self).reset();
}

inline bitnet_status device_count(bitnet_backend* self, uint32_t* out, bitnet_error* err) {
  return guarded(err, "device_count", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    const std::string& why = backends::get(self)->author.why_unavailable;
    if (!why.empty()) return report.fail(BITNET_UNAVAILABLE, "%s", why.c_str());
    *out = 1;
    return BITNET_OK;
  });
}

inline bitnet_status device_info(bitnet_backend* self, uint32_t index, bitnet_device_info* out,
                                 bitnet_error* err) {
  return guarded(err, "device_info", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    if (index != 0) return no_such_device(report, index);
    bitnet_device_info device = backends::get(self)->author.device;
    device.struct_size = sizeof device;
    device.buffer_alignment_bytes = memory::alignment;
    hand_over(device, out);
    return BITNET_OK;
  });
}

inline bitnet_status kernels(bitnet_backend* self, uint32_t index, bitnet_kernel_info* out,
                             uint32_t out_size, uint32_t* count, bitnet_error* err) {
  return guarded(err, "kernels", [&](const reporter& report) {
    if (!count || (*count != 0 && (!out || out_size < sizeof(uint32_t))))
      return report.fail(BITNET_INVALID_ARGUMENT, "no room for the kernels was given");
    if (index != 0) return no_such_device(report, index);
    const uint32_t capacity = *count;
    uint32_t n = 0;
    const auto list = [&](uint32_t op, uint32_t format, uint32_t level, uint32_t exact,
                          const std::string& id) {
      if (n < capacity) {
        bitnet_kernel_info kernel{.struct_size = sizeof kernel,
                                  .op = op,
                                  .format = format,
                                  .level = level,
                                  .exact = exact,
                                  .reserved_0 = 0,
                                  .id = {}};
        std::snprintf(kernel.id, sizeof kernel.id, "%s", id.c_str());
        auto* at = reinterpret_cast<uint8_t*>(out) + uint64_t{n} * out_size;
        kernel.struct_size = std::min<uint32_t>(out_size, sizeof kernel);
        std::memcpy(at, &kernel, kernel.struct_size);
      }
      ++n;
    };
    const definition& d = backends::get(self)->author;
    for (const composite& c : d.composites) list(c.op, c.format, BITNET_LEVEL_FUSED, c.exact, c.id);
    for (const primitive& p : d.primitives) list(p.op, p.format, p.level, p.exact, p.id);
    for (const bitnet_kernel_info& k : d.others) list(k.op, k.format, k.level, k.exact, k.id);
    *count = n;
    return BITNET_OK;
  });
}

inline bitnet_status device_open(bitnet_backend* self, uint32_t index, bitnet_device** out,
                                 bitnet_error* err) {
  return guarded(err, "device_open", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    if (index != 0) return no_such_device(report, index);
    const std::string& why = backends::get(self)->author.why_unavailable;
    if (!why.empty()) return report.fail(BITNET_UNAVAILABLE, "%s", why.c_str());
    *out = reinterpret_cast<bitnet_device*>(self);
    return BITNET_OK;
  });
}

inline void device_close(bitnet_device*) {}  // the backend owns it

inline bitnet_status buffer_create(bitnet_device*, uint64_t bytes, bitnet_buffer** out,
                                   bitnet_error* err) {
  return guarded(err, "buffer_create", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    *out = buffers::give(std::make_unique<memory>(bytes));
    return BITNET_OK;
  });
}

inline bitnet_status buffer_map(bitnet_buffer* buffer, void** out, bitnet_error* err) {
  return guarded(err, "buffer_map", [&](const reporter& report) {
    if (!buffer || !out) return report.fail(BITNET_INVALID_ARGUMENT, "buffer or out is NULL");
    *out = buffers::get(buffer)->data();
    return BITNET_OK;
  });
}

inline void buffer_destroy(bitnet_buffer* buffer) {
  buffers::take(buffer).reset();
}

inline bitnet_status weight_plan(bitnet_device*, const bitnet_tensor_desc* desc,
                                 bitnet_weight_plan* out, bitnet_error* err) {
  return guarded(err, "weight_plan", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    tensor t;
    if (bitnet_status s = describe(desc, t, report); failed(s)) return s;
    bitnet_weight_plan answer{};
    plan(t, answer);
    answer.struct_size = sizeof answer;
    hand_over(answer, out);
    return BITNET_OK;
  });
}

inline bitnet_status weights_create(bitnet_device* device, const bitnet_tensor_desc* descs,
                                    uint32_t desc_size, uint32_t n, bitnet_weights** out,
                                    bitnet_error* err) {
  return guarded(err, "weights_create", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    const backend& b = *devices::get(device);
    auto set = std::make_unique<weight_set>(b.author, b.host_services);
    if (bitnet_status s = set->create(descs, desc_size, n, report); failed(s)) return s;
    *out = weight_sets::give(std::move(set));
    return BITNET_OK;
  });
}

inline bitnet_status weight_write(bitnet_weights* weights, uint32_t index, uint64_t offset,
                                  const void* data, uint64_t bytes, bitnet_error* err) {
  return guarded(err, "weight_write", [&](const reporter& report) {
    return weight_sets::get(weights)->write(index, offset, data, bytes, report);
  });
}

inline bitnet_status weight_alias(bitnet_weights* weights, uint32_t index, const void* data,
                                  uint64_t bytes, bitnet_error* err) {
  return guarded(err, "weight_alias", [&](const reporter& report) {
    return weight_sets::get(weights)->alias(index, data, bytes, report);
  });
}

inline bitnet_status weight_seal(bitnet_weights* weights, uint32_t index, bitnet_error* err) {
  return guarded(err, "weight_seal", [&](const reporter& report) {
    return weight_sets::get(weights)->seal(index, report);
  });
}

inline void weights_destroy(bitnet_weights* weights) {
  weight_sets::take(weights).reset();
}

inline bitnet_status op_query(bitnet_device* device, const bitnet_op* ops, uint32_t op_size,
                              const uint32_t* query_formats, uint32_t n, uint32_t* levels,
                              bitnet_error* err) {
  return guarded(err, "op_query", [&](const reporter& report) {
    if (n != 0 && (!ops || !query_formats || !levels || op_size < sizeof(bitnet_op)))
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "ops, formats or levels are missing or too short");
    const definition& d = devices::get(device)->author;
    for (uint32_t i = 0; i < n; ++i) {
      bitnet_op op;
      std::memcpy(&op, reinterpret_cast<const uint8_t*>(ops) + uint64_t{i} * op_size, sizeof op);
      levels[i] = BITNET_LEVEL_NONE;
      for (const composite& c : d.composites)
        if (c.op == op.op) levels[i] = BITNET_LEVEL_FUSED;
      // Rank-1 weights are widened to f32, so a norm takes every dense format.
      const bool vector = op.op == BITNET_OP_RMS_NORM || op.op == BITNET_OP_ROPE;
      for (const primitive& p : d.primitives) {
        const bool fits = p.format == BITNET_FORMAT_NONE ||
                          query_formats[i] == BITNET_FORMAT_NONE || p.format == query_formats[i] ||
                          (vector && query_formats[i] != BITNET_FORMAT_TERNARY2);
        if (p.op != op.op || !fits) continue;
        levels[i] = p.level;
        break;
      }
    }
    return BITNET_OK;
  });
}

inline bitnet_status program_build(bitnet_device* device, const bitnet_graph* graph,
                                   bitnet_weights* weights, const bitnet_program_options* options,
                                   bitnet_program** out, bitnet_error* err) {
  return guarded(err, "program_build", [&](const reporter& report) {
    if (!weights || !out) return report.fail(BITNET_INVALID_ARGUMENT, "weights or out is NULL");
    const backend& b = *devices::get(device);
    auto made = std::make_unique<program>(b.author, b.host_services);
    if (bitnet_status s = made->build(graph, *weight_sets::get(weights), options, report);
        failed(s))
      return s;
    *out = programs::give(std::move(made));
    return BITNET_OK;
  });
}

inline bitnet_status program_estimate(bitnet_program* handle, uint32_t n_tokens,
                                      bitnet_program_estimate* out, bitnet_error* err) {
  return guarded(err, "program_estimate", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    bitnet_program_estimate answer{};
    if (bitnet_status s = programs::get(handle)->estimate(n_tokens, answer.scratch_bytes, report);
        failed(s))
      return s;
    answer.struct_size = sizeof answer;
    hand_over(answer, out);
    return BITNET_OK;
  });
}

// Everything is ready after program_build; only the bound is checked.
inline bitnet_status program_prepare(bitnet_program* handle, uint32_t n_tokens, bitnet_error* err) {
  return guarded(err, "program_prepare", [&](const reporter& report) {
    uint64_t bytes = 0;
    return programs::get(handle)->estimate(n_tokens, bytes, report);
  });
}

inline bitnet_status program_bind(bitnet_program* handle, const bitnet_step_buffers* b,
                                  bitnet_error* err) {
  return guarded(err, "program_bind", [&](const reporter& report) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the size of a pointer is what is meant
    if (!b || !BITNET_HAS_FIELD(b, bitnet_step_buffers, logits))
      return report.fail(BITNET_INVALID_ARGUMENT, "the step buffers are missing or too short");
    const auto see = [](bitnet_buffer* buffer) {
      const memory* m = buffers::get(buffer);
      return m ? bound_buffer{m->data(), m->size()} : bound_buffer{};
    };
    return programs::get(handle)->bind(
        {see(b->tokens), see(b->positions), see(b->sequences), see(b->slots), see(b->block_tables),
         see(b->output_rows), see(b->logits)},
        report);
  });
}

inline bitnet_status program_stats(bitnet_program* handle, bitnet_kernel_stat* out,
                                   uint32_t out_size, uint32_t* count, bitnet_error* err) {
  return guarded(err, "program_stats", [&](const reporter& report) {
    if (!count || (*count != 0 && (!out || out_size < sizeof(uint32_t))))
      return report.fail(BITNET_INVALID_ARGUMENT, "no room for the counts was given");
    std::vector<bitnet_kernel_stat> stats = programs::get(handle)->stats();
    for (uint64_t i = 0; i < std::min<uint64_t>(*count, stats.size()); ++i) {
      stats[i].struct_size = std::min<uint32_t>(out_size, sizeof stats[i]);
      std::memcpy(reinterpret_cast<uint8_t*>(out) + i * out_size, &stats[i], stats[i].struct_size);
    }
    *count = static_cast<uint32_t>(stats.size());
    return BITNET_OK;
  });
}

inline void program_destroy(bitnet_program* handle) {
  programs::take(handle).reset();
}

inline bitnet_status kv_pool_create(bitnet_device* device, const bitnet_kv_config* config,
                                    bitnet_kv_pool** out, bitnet_error* err) {
  return guarded(err, "kv_pool_create", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    auto pool = std::make_unique<kv_pool>();
    const uint32_t kv_dtypes = devices::get(device)->author.device.kv_dtypes;
    if (bitnet_status s = pool->create(config, kv_dtypes, report); failed(s)) return s;
    *out = kv_pools::give(std::move(pool));
    return BITNET_OK;
  });
}

inline bitnet_status kv_copy_blocks(bitnet_kv_pool* pool, const uint32_t* from, const uint32_t* to,
                                    uint32_t n, bitnet_error* err) {
  return guarded(err, "kv_copy_blocks", [&](const reporter& report) {
    return kv_pools::get(pool)->copy(from, to, n, report);
  });
}

inline bitnet_status kv_export(bitnet_kv_pool* handle, uint32_t block, void* out, uint64_t bytes,
                               bitnet_error* err) {
  return guarded(err, "kv_export", [&](const reporter& report) {
    const kv_pool& pool = *kv_pools::get(handle);
    if (bitnet_status s = pool.check(block, out, bytes, report); failed(s)) return s;
    std::memcpy(out, pool.block(block), bytes);
    return BITNET_OK;
  });
}

inline bitnet_status kv_import(bitnet_kv_pool* handle, uint32_t block, const void* data,
                               uint64_t bytes, bitnet_error* err) {
  return guarded(err, "kv_import", [&](const reporter& report) {
    const kv_pool& pool = *kv_pools::get(handle);
    if (bitnet_status s = pool.check(block, data, bytes, report); failed(s)) return s;
    std::memcpy(pool.block(block), data, bytes);
    return BITNET_OK;
  });
}

inline void kv_pool_destroy(bitnet_kv_pool* pool) {
  kv_pools::take(pool).reset();
}

inline bitnet_status queue_create(bitnet_device* device, bitnet_queue** out, bitnet_error* err) {
  return guarded(err, "queue_create", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    auto q = std::make_unique<queue>();
    q->author = &devices::get(device)->author;
    *out = queues::give(std::move(q));
    return BITNET_OK;
  });
}

inline bitnet_status queue_submit(bitnet_queue* handle, const bitnet_step* step,
                                  bitnet_error* err) {
  return guarded(err, "queue_submit", [&](const reporter& report) {
    if (!step || !BITNET_HAS_FIELD(step, bitnet_step, signal_value) || !step->program)
      return report.fail(BITNET_INVALID_ARGUMENT, "the step or its program is missing");
    queue& q = *queues::get(handle);
    const uint64_t now = q.timeline.load();
    if (step->signal_value <= now)
      return report.fail(BITNET_INVALID_ARGUMENT, "signal %llu, the timeline is at %llu already",
                         static_cast<unsigned long long>(step->signal_value),
                         static_cast<unsigned long long>(now));
    const kv_pool* pool = kv_pools::get(step->kv_pool);
    if (bitnet_status s = programs::get(step->program)->run(*step, pool, report); failed(s))
      return s;
    q.timeline.store(step->signal_value);
    return BITNET_OK;
  });
}

inline bitnet_status queue_wait(bitnet_queue* handle, uint64_t value, uint64_t, bitnet_error* err) {
  return guarded(err, "queue_wait", [&](const reporter& report) {
    const uint64_t now = queues::get(handle)->timeline.load();
    if (now >= value) return BITNET_OK;
    return report.fail(BITNET_TIMEOUT, "the timeline is at %llu and no submitted step reaches %llu",
                       static_cast<unsigned long long>(now),
                       static_cast<unsigned long long>(value));
  });
}

inline bitnet_status queue_poll(bitnet_queue* handle, uint64_t* out, bitnet_error* err) {
  return guarded(err, "queue_poll", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    *out = queues::get(handle)->timeline.load();
    return BITNET_OK;
  });
}

inline void queue_destroy(bitnet_queue* handle) {
  queues::take(handle).reset();
}

// Steps end before queue_submit returns, and there are no threads.
inline bitnet_status quiesce(bitnet_backend*, uint64_t, bitnet_error*) {
  return BITNET_OK;
}

inline bitnet_status packed_describe(bitnet_weights* weights, uint32_t index,
                                     bitnet_packed_info* out, bitnet_error* err) {
  return guarded(err, "packed describe", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    bitnet_packed_info answer{};
    if (bitnet_status s = weight_sets::get(weights)->describe_packed(index, answer, report);
        failed(s))
      return s;
    answer.struct_size = sizeof answer;
    hand_over(answer, out);
    return BITNET_OK;
  });
}

inline bitnet_status packed_pack(bitnet_weights* weights, uint32_t index, const void** out,
                                 bitnet_error* err) {
  return guarded(err, "packed pack", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    return weight_sets::get(weights)->pack(index, out, report);
  });
}

inline bitnet_status packed_adopt(bitnet_weights* weights, uint32_t index, const void* data,
                                  uint64_t bytes, bitnet_error* err) {
  return guarded(err, "packed adopt", [&](const reporter& report) {
    return weight_sets::get(weights)->adopt_packed(index, data, bytes, report);
  });
}

inline constexpr bitnet_packed_weights_v1 packed_weights{
    {sizeof(bitnet_packed_weights_v1), 1}, packed_describe, packed_pack, packed_adopt};

inline bitnet_status tuning_describe(bitnet_device* device, char* out, uint64_t capacity,
                                     bitnet_error* err) {
  return guarded(err, "tuning describe", [&](const reporter& report) {
    const std::string text = devices::get(device)->author.tuning.describe();
    if (!out || capacity <= text.size())
      return report.fail(BITNET_INVALID_ARGUMENT, "the settings need %zu bytes", text.size() + 1);
    std::memcpy(out, text.c_str(), text.size() + 1);
    return BITNET_OK;
  });
}

inline bitnet_status tuning_measure(bitnet_device* device, uint64_t budget_ns, bitnet_error* err) {
  return guarded(err, "tuning measure", [&](const reporter& report) {
    const backend& b = *devices::get(device);
    const std::string doubt = b.author.tuning.measure(b.author.engine, b.host_services, budget_ns);
    if (doubt.empty()) return BITNET_OK;
    return report.fail(BITNET_UNAVAILABLE, "%s", doubt.c_str());
  });
}

inline bitnet_status tuning_adopt(bitnet_device* device, bitnet_str settings, bitnet_error* err) {
  return guarded(err, "tuning adopt", [&](const reporter& report) {
    const tunable& tuned = devices::get(device)->author.tuning;
    if (!tuned.adopt(to_view(settings)))
      return report.fail(BITNET_INVALID_ARGUMENT, "settings '%.*s' are not of this version",
                         static_cast<int>(std::min<uint64_t>(settings.size, 128)),
                         settings.data ? settings.data : "");
    if (!tuned.due || !tuned.due()) return BITNET_OK;
    return report.fail(BITNET_UNAVAILABLE, "the last measurement could not be believed");
  });
}

inline constexpr bitnet_tuning_v1 tuning{
    {sizeof(bitnet_tuning_v1), 1}, tuning_describe, tuning_measure, tuning_adopt};

inline const bitnet_interface_header* query_interface(bitnet_backend* self, bitnet_str name,
                                                      uint32_t min_version) {
  if (min_version > 1) return nullptr;
  const definition& author = backends::get(self)->author;
  if (to_view(name) == BITNET_INTERFACE_PACKED_WEIGHTS && author.packing.bytes)
    return &packed_weights.header;
  if (to_view(name) == BITNET_INTERFACE_TUNING && author.tuning.describe) return &tuning.header;
  return nullptr;
}

}  // namespace interpreter

namespace interpreter {

// Takes away the kernels that the host's parameter "disable" names, so that the next row that fits
// runs in their place: it has found them wrong.
inline void remove_disabled(const bitnet_open_request& request, definition& d) {
  for (uint32_t i = 0; i < request.n_params; ++i) {
    if (to_view(request.params[i].key) != "disable") continue;
    const std::string_view list = to_view(request.params[i].value);
    for (size_t begin = 0; begin < list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      const std::string_view id = list.substr(begin, end - begin);
      const auto named = [id](const auto& row) { return std::string_view(row.id) == id; };
      std::erase_if(d.primitives, named);
      std::erase_if(d.composites, named);
      std::erase_if(d.others, named);
      begin = end + 1;
    }
  }
}

inline void read_poll(const bitnet_open_request& request, definition& d) {
  for (uint32_t i = 0; i < request.n_params; ++i) {
    if (to_view(request.params[i].key) != "poll") continue;
    const std::string_view text = to_view(request.params[i].value);
    uint32_t poll = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), poll);
    if (read.ec == std::errc() && read.ptr == text.data() + text.size()) d.poll = poll;
  }
}

}  // namespace interpreter

// Answers the entry call for a backend that `describe` describes.
inline bitnet_status open_interpreter(const bitnet_host_v0* services,
                                      const bitnet_open_request* request, bitnet_backend_v0* out,
                                      bitnet_error* err, describe_backend describe) noexcept {
  return guarded(err, "entry", [&](const reporter& report) {
    namespace slot = interpreter;
    bitnet_backend_v0 table{};
    table.info = slot::info;
    table.close = slot::close;
    table.device_count = slot::device_count;
    table.device_info = slot::device_info;
    table.kernels = slot::kernels;
    table.device_open = slot::device_open;
    table.device_close = slot::device_close;
    table.buffer_create = slot::buffer_create;
    table.buffer_map = slot::buffer_map;
    table.buffer_destroy = slot::buffer_destroy;
    table.weight_plan = slot::weight_plan;
    table.weights_create = slot::weights_create;
    table.weight_write = slot::weight_write;
    table.weight_alias = slot::weight_alias;
    table.weight_seal = slot::weight_seal;
    table.weights_destroy = slot::weights_destroy;
    table.op_query = slot::op_query;
    table.program_build = slot::program_build;
    table.program_estimate = slot::program_estimate;
    table.program_prepare = slot::program_prepare;
    table.program_bind = slot::program_bind;
    table.program_stats = slot::program_stats;
    table.program_destroy = slot::program_destroy;
    table.kv_pool_create = slot::kv_pool_create;
    table.kv_copy_blocks = slot::kv_copy_blocks;
    table.kv_export = slot::kv_export;
    table.kv_import = slot::kv_import;
    table.kv_pool_destroy = slot::kv_pool_destroy;
    table.queue_create = slot::queue_create;
    table.queue_submit = slot::queue_submit;
    table.queue_wait = slot::queue_wait;
    table.queue_poll = slot::queue_poll;
    table.queue_destroy = slot::queue_destroy;
    table.quiesce = slot::quiesce;
    table.query_interface = slot::query_interface;
    auto opened = std::make_unique<slot::backend>(services);
    table.self = reinterpret_cast<bitnet_backend*>(opened.get());
    if (bitnet_status s = fill_table(services, request, out, table, {}, report); failed(s))
      return s;
    slot::read_poll(*request, opened->author);
    describe(*request, opened->author);
    slot::remove_disabled(*request, opened->author);
    [[maybe_unused]] const auto* kept = opened.release();  // close() takes it back
    return BITNET_OK;
  });
}

}  // namespace bitnet::sdk
