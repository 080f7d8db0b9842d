#include "backend.hpp"

#include <algorithm>
#include <cstring>

#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/handle.hpp"
#include "bitnet/sdk/table.hpp"
#include "kv_pool.hpp"
#include "names.hpp"
#include "opened.hpp"
#include "program.hpp"
#include "weights.hpp"

namespace bitnet::gpu {
namespace {

using sdk::failed;
using sdk::guarded;
using sdk::reporter;

constexpr uint32_t kv_dtypes =
    1u << BITNET_DTYPE_F32 | 1u << BITNET_DTYPE_F16 | 1u << BITNET_DTYPE_Q8_0;

struct backend {
  backend(const author& a, const bitnet_host_v0* services) : about(a), host(services) {}

  // The platform, loaded when it is first needed: the entry call must be cheap.
  bitnet_status load(platform*& out, const reporter& report) {
    const std::scoped_lock guard(lock);
    if (!loaded)
      if (bitnet_status s = about.load(host, user, loaded, report); failed(s)) return s;
    out = loaded.get();
    return BITNET_OK;
  }

  const author& about;
  const sdk::host host;
  settings user;
  std::vector<std::string> disabled;  // kernel ids
  std::mutex lock;
  std::unique_ptr<platform> loaded;
  std::vector<opened*> devices;  // for quiesce
};

struct queue_object {
  opened* device;
  std::shared_ptr<running> run;
};
struct device_object {
  backend* owner;
  opened open;
};

using backends = sdk::handle<bitnet_backend, backend>;
using devices = sdk::handle<bitnet_device, device_object>;
using buffers = sdk::handle<bitnet_buffer, step_buffer>;
using weight_sets = sdk::handle<bitnet_weights, weight_set>;
using kv_pools = sdk::handle<bitnet_kv_pool, kv_pool>;
using programs = sdk::handle<bitnet_program, program>;
using queues = sdk::handle<bitnet_queue, queue_object>;

bitnet_status find_device(bitnet_backend* self, uint32_t index, platform*& out,
                          const reporter& report) {
  if (bitnet_status s = backends::get(self)->load(out, report); failed(s)) return s;
  if (index < out->devices().size()) return BITNET_OK;
  return report.fail(BITNET_INVALID_ARGUMENT, "device %u: there are %zu", index,
                     out->devices().size());
}

bool is_disabled(const backend& b, const std::string& id) {
  return std::find(b.disabled.begin(), b.disabled.end(), id) != b.disabled.end();
}

bitnet_status info(bitnet_backend* self, bitnet_backend_info* out, bitnet_error* err) {
  return guarded(err, "info", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    const author& a = backends::get(self)->about;
    sdk::hand_over(bitnet_backend_info{.struct_size = sizeof *out,
                                       .life_flags = a.life_flags,
                                       .name = sdk::to_str(a.name),
                                       .version = sdk::to_str(a.version),
                                       .vendor = sdk::to_str(a.vendor),
                                       .license = sdk::to_str(a.license),
                                       .driver = sdk::to_str(a.driver)},
                   out);
    return BITNET_OK;
  });
}

void close(bitnet_backend* self) {
  backends::take(self).reset();
}

bitnet_status device_count(bitnet_backend* self, uint32_t* out, bitnet_error* err) {
  return guarded(err, "device_count", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    platform* found = nullptr;
    if (bitnet_status s = backends::get(self)->load(found, report); failed(s)) return s;
    *out = static_cast<uint32_t>(found->devices().size());
    return BITNET_OK;
  });
}

template <uint64_t N>
void put(char (&to)[N], const std::string& text) {
  std::snprintf(to, N, "%s", text.c_str());
}

bitnet_status device_info(bitnet_backend* self, uint32_t index, bitnet_device_info* out,
                          bitnet_error* err) {
  return guarded(err, "device_info", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    platform* found = nullptr;
    if (bitnet_status s = find_device(self, index, found, report); failed(s)) return s;
    const facts& f = found->devices()[index];
    bitnet_device_info answer{};
    answer.struct_size = sizeof answer;
    answer.device_class = f.device_class;
    put(answer.name, f.name);
    put(answer.uuid, f.uuid);
    put(answer.pci_address, f.pci_address);
    put(answer.arch, f.arch);
    put(answer.driver_version, f.driver_version);
    answer.memory_total_bytes = f.memory_total_bytes;
    answer.compute_units = f.compute_units;
    answer.buffer_alignment_bytes = std::max(f.binding_alignment, 64u);
    answer.max_allocation_bytes = f.max_allocation_bytes;
    answer.kv_dtypes = kv_dtypes;
    answer.attention_flags = BITNET_ATTENTION_WINDOW;
    sdk::hand_over(answer, out);
    return BITNET_OK;
  });
}

bitnet_status kernels(bitnet_backend* self, uint32_t index, bitnet_kernel_info* out,
                      uint32_t out_size, uint32_t* count, bitnet_error* err) {
  return guarded(err, "kernels", [&](const reporter& report) {
    if (!count || (*count != 0 && (!out || out_size < sizeof(uint32_t))))
      return report.fail(BITNET_INVALID_ARGUMENT, "no room for the kernels was given");
    platform* found = nullptr;
    if (bitnet_status s = find_device(self, index, found, report); failed(s)) return s;
    const backend& b = *backends::get(self);
    uint32_t n = 0;
    for (const named_kernel& k : all_kernels(b.about.name)) {
      if (is_disabled(b, k.id)) continue;
      if (n < *count) {
        bitnet_kernel_info kernel{};
        kernel.struct_size = std::min<uint32_t>(out_size, sizeof kernel);
        kernel.op = k.op;
        kernel.format = k.format;
        kernel.level = k.level;
        kernel.exact = k.exact;
        put(kernel.id, k.id);
        std::memcpy(reinterpret_cast<uint8_t*>(out) + uint64_t{n} * out_size, &kernel,
                    kernel.struct_size);
      }
      ++n;
    }
    *count = n;
    return BITNET_OK;
  });
}

bitnet_status device_open(bitnet_backend* self, uint32_t index, bitnet_device** out,
                          bitnet_error* err) {
  return guarded(err, "device_open", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    platform* found = nullptr;
    if (bitnet_status s = find_device(self, index, found, report); failed(s)) return s;
    backend& b = *backends::get(self);
    std::unique_ptr<device> driver;
    if (bitnet_status s = found->open(index, driver, report); failed(s)) return s;
    std::unique_ptr<device_object> made(
        new device_object{&b, {std::move(driver), b.host, b.about.name, b.disabled}});
    const std::scoped_lock guard(b.lock);
    b.devices.push_back(&made->open);
    *out = devices::give(std::move(made));
    return BITNET_OK;
  });
}

void device_close(bitnet_device* handle) {
  const std::unique_ptr<device_object> device = devices::take(handle);
  if (!device) return;
  const std::scoped_lock guard(device->owner->lock);
  std::erase(device->owner->devices, &device->open);
}

bitnet_status buffer_create(bitnet_device* device, uint64_t bytes, bitnet_buffer** out,
                            bitnet_error* err) {
  return guarded(err, "buffer_create", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    auto made = std::make_unique<step_buffer>();
    made->device = &devices::get(device)->open;
    if (bitnet_status s = made->device->pool.take(bytes, placement::host, made->memory, report);
        failed(s))
      return s;
    *out = buffers::give(std::move(made));
    return BITNET_OK;
  });
}

bitnet_status buffer_map(bitnet_buffer* buffer, void** out, bitnet_error* err) {
  return guarded(err, "buffer_map", [&](const reporter& report) {
    if (!buffer || !out) return report.fail(BITNET_INVALID_ARGUMENT, "buffer or out is NULL");
    *out = buffers::get(buffer)->memory.get()->mapped();
    return BITNET_OK;
  });
}

void buffer_destroy(bitnet_buffer* handle) {
  const std::unique_ptr<step_buffer> buffer = buffers::take(handle);
  if (buffer) buffer->device->settle();
}

bitnet_status weight_plan(bitnet_device* device, const bitnet_tensor_desc* desc,
                          bitnet_weight_plan* out, bitnet_error* err) {
  return guarded(err, "weight_plan", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    bitnet_weight_plan answer{};
    if (bitnet_status s = weight_set::plan(devices::get(device)->open, desc, answer, report);
        failed(s))
      return s;
    answer.struct_size = sizeof answer;
    sdk::hand_over(answer, out);
    return BITNET_OK;
  });
}

bitnet_status weights_create(bitnet_device* device, const bitnet_tensor_desc* descs,
                             uint32_t desc_size, uint32_t n, bitnet_weights** out,
                             bitnet_error* err) {
  return guarded(err, "weights_create", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    auto set = std::make_unique<weight_set>(devices::get(device)->open);
    if (bitnet_status s = set->create(descs, desc_size, n, report); failed(s)) return s;
    *out = weight_sets::give(std::move(set));
    return BITNET_OK;
  });
}

bitnet_status weight_write(bitnet_weights* weights, uint32_t index, uint64_t offset,
                           const void* data, uint64_t bytes, bitnet_error* err) {
  return guarded(err, "weight_write", [&](const reporter& report) {
    return weight_sets::get(weights)->write(index, offset, data, bytes, report);
  });
}

bitnet_status weight_alias(bitnet_weights*, uint32_t index, const void*, uint64_t,
                           bitnet_error* err) {
  return reporter(err, "weight_alias")
      .fail(BITNET_INVALID_ARGUMENT, "tensor %u cannot be aliased: this device has its own memory",
            index);
}

bitnet_status weight_seal(bitnet_weights* weights, uint32_t index, bitnet_error* err) {
  return guarded(err, "weight_seal", [&](const reporter& report) {
    return weight_sets::get(weights)->seal(index, report);
  });
}

void weights_destroy(bitnet_weights* weights) {
  weight_sets::take(weights).reset();
}

bitnet_status op_query(bitnet_device* handle, const bitnet_op* ops, uint32_t op_size,
                       const uint32_t* formats, uint32_t n, uint32_t* levels, bitnet_error* err) {
  return guarded(err, "op_query", [&](const reporter& report) {
    if (n != 0 && (!ops || !formats || !levels || op_size < sizeof(bitnet_op)))
      return report.fail(BITNET_INVALID_ARGUMENT,
                         "ops, formats or levels are missing or too short");
    const backend& b = *devices::get(handle)->owner;
    const std::vector<named_kernel> all = all_kernels(b.about.name);
    for (uint32_t i = 0; i < n; ++i) {
      bitnet_op op;
      std::memcpy(&op, reinterpret_cast<const uint8_t*>(ops) + uint64_t{i} * op_size, sizeof op);
      levels[i] = BITNET_LEVEL_NONE;
      for (const named_kernel& k : all) {
        // Rank-1 weights are widened to f32, so a norm takes every dense format.
        const bool fits = k.format == BITNET_FORMAT_NONE
                              ? formats[i] != BITNET_FORMAT_TERNARY2
                              : formats[i] == BITNET_FORMAT_NONE || formats[i] == k.format;
        if (k.op != op.op || k.fused || !fits || is_disabled(b, k.id)) continue;
        levels[i] = k.level;
        break;
      }
    }
    return BITNET_OK;
  });
}

bitnet_status program_build(bitnet_device* device, const bitnet_graph* graph,
                            bitnet_weights* weights, const bitnet_program_options* options,
                            bitnet_program** out, bitnet_error* err) {
  return guarded(err, "program_build", [&](const reporter& report) {
    if (!weights || !out) return report.fail(BITNET_INVALID_ARGUMENT, "weights or out is NULL");
    auto made = std::make_unique<program>(devices::get(device)->open);
    if (bitnet_status s = made->build(graph, *weight_sets::get(weights), options, report);
        failed(s))
      return s;
    *out = programs::give(std::move(made));
    return BITNET_OK;
  });
}

bitnet_status program_estimate(bitnet_program* handle, uint32_t n_tokens,
                               bitnet_program_estimate* out, bitnet_error* err) {
  return guarded(err, "program_estimate", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    bitnet_program_estimate answer{};
    if (bitnet_status s = programs::get(handle)->estimate(n_tokens, answer.scratch_bytes, report);
        failed(s))
      return s;
    answer.struct_size = sizeof answer;
    sdk::hand_over(answer, out);
    return BITNET_OK;
  });
}

bitnet_status program_prepare(bitnet_program* handle, uint32_t n_tokens, bitnet_error* err) {
  return guarded(err, "program_prepare", [&](const reporter& report) {
    return programs::get(handle)->prepare(n_tokens, report);
  });
}

bitnet_status program_bind(bitnet_program* handle, const bitnet_step_buffers* b,
                           bitnet_error* err) {
  return guarded(err, "program_bind",
                 [&](const reporter& report) { return programs::get(handle)->bind(b, report); });
}

bitnet_status program_stats(bitnet_program* handle, bitnet_kernel_stat* out, uint32_t out_size,
                            uint32_t* count, bitnet_error* err) {
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

void program_destroy(bitnet_program* handle) {
  programs::take(handle).reset();
}

bitnet_status kv_pool_create(bitnet_device* device, const bitnet_kv_config* config,
                             bitnet_kv_pool** out, bitnet_error* err) {
  return guarded(err, "kv_pool_create", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    auto pool = std::make_unique<kv_pool>(devices::get(device)->open);
    if (bitnet_status s = pool->create(config, kv_dtypes, report); failed(s)) return s;
    *out = kv_pools::give(std::move(pool));
    return BITNET_OK;
  });
}

bitnet_status kv_copy_blocks(bitnet_kv_pool* pool, const uint32_t* from, const uint32_t* to,
                             uint32_t n, bitnet_error* err) {
  return guarded(err, "kv_copy_blocks", [&](const reporter& report) {
    return kv_pools::get(pool)->copy(from, to, n, report);
  });
}

bitnet_status kv_export(bitnet_kv_pool* pool, uint32_t block, void* out, uint64_t bytes,
                        bitnet_error* err) {
  return guarded(err, "kv_export", [&](const reporter& report) {
    return kv_pools::get(pool)->write_out(block, static_cast<uint8_t*>(out), bytes, report);
  });
}

bitnet_status kv_import(bitnet_kv_pool* pool, uint32_t block, const void* data, uint64_t bytes,
                        bitnet_error* err) {
  return guarded(err, "kv_import", [&](const reporter& report) {
    return kv_pools::get(pool)->read_in(block, static_cast<const uint8_t*>(data), bytes, report);
  });
}

void kv_pool_destroy(bitnet_kv_pool* pool) {
  kv_pools::take(pool).reset();
}

bitnet_status queue_create(bitnet_device* handle, bitnet_queue** out, bitnet_error* err) {
  return guarded(err, "queue_create", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    opened& device = devices::get(handle)->open;
    auto made = std::make_unique<queue_object>();
    made->device = &device;
    made->run = std::make_shared<running>();
    {
      const std::scoped_lock guard(device.lock);
      if (bitnet_status s = device.driver->make_queue(made->run->work, report); failed(s)) return s;
    }
    const std::scoped_lock guard(device.queues_lock);
    device.queues.push_back(made->run);
    *out = queues::give(std::move(made));
    return BITNET_OK;
  });
}

bitnet_status queue_submit(bitnet_queue* handle, const bitnet_step* step, bitnet_error* err) {
  return guarded(err, "queue_submit", [&](const reporter& report) {
    if (!step || !BITNET_HAS_FIELD(step, bitnet_step, signal_value) || !step->program)
      return report.fail(BITNET_INVALID_ARGUMENT, "the step or its program is missing");
    const queue_object& q = *queues::get(handle);
    const uint64_t last = q.run->submitted.load();
    if (step->signal_value <= last)
      return report.fail(BITNET_INVALID_ARGUMENT, "signal %llu, the timeline goes to %llu already",
                         static_cast<unsigned long long>(step->signal_value),
                         static_cast<unsigned long long>(last));
    return programs::get(step->program)->run(*step, kv_pools::get(step->kv_pool), q.run, report);
  });
}

bitnet_status queue_wait(bitnet_queue* handle, uint64_t value, uint64_t timeout_ns,
                         bitnet_error* err) {
  return guarded(err, "queue_wait", [&](const reporter& report) {
    const running& run = *queues::get(handle)->run;
    const uint64_t submitted = run.submitted.load();
    if (value > submitted)
      return report.fail(
          BITNET_TIMEOUT, "the timeline goes to %llu and no submitted step reaches %llu",
          static_cast<unsigned long long>(submitted), static_cast<unsigned long long>(value));
    return value == 0 ? BITNET_OK : run.work->wait(value, timeout_ns, report);
  });
}

bitnet_status queue_poll(bitnet_queue* handle, uint64_t* out, bitnet_error* err) {
  return guarded(err, "queue_poll", [&](const reporter& report) {
    if (!out) return report.fail(BITNET_INVALID_ARGUMENT, "out is NULL");
    uint64_t value = 0;
    if (bitnet_status s = queues::get(handle)->run->work->poll(value, report); failed(s)) return s;
    *out = value;
    return BITNET_OK;
  });
}

void queue_destroy(bitnet_queue* handle) {
  const std::unique_ptr<queue_object> q = queues::take(handle);
  if (!q) return;
  guarded(nullptr, "queue_destroy",
          [&](const reporter& report) { return q->run->settle(UINT64_MAX, report); });
  const std::scoped_lock guard(q->device->queues_lock);
  std::erase(q->device->queues, q->run);
}

bitnet_status quiesce(bitnet_backend* self, uint64_t timeout_ns, bitnet_error* err) {
  return guarded(err, "quiesce", [&](const reporter& report) {
    backend& b = *backends::get(self);
    const std::scoped_lock guard(b.lock);
    const uint64_t start = b.host.now_ns();
    for (opened* device : b.devices) {
      const uint64_t spent = b.host.now_ns() - start;
      const uint64_t left = spent < timeout_ns ? timeout_ns - spent : 0;
      if (bitnet_status s = device->settle(left, report); failed(s)) return s;
    }
    return BITNET_OK;
  });
}

void read_settings(const bitnet_open_request& request, backend& b) {
  for (uint32_t i = 0; i < request.n_params; ++i)
    b.user.insert_or_assign(std::string(sdk::to_view(request.params[i].key)),
                            std::string(sdk::to_view(request.params[i].value)));
  const auto list = b.user.find("disable");
  if (list == b.user.end()) return;
  for (size_t begin = 0; begin < list->second.size();) {
    const size_t end = std::min(list->second.find(',', begin), list->second.size());
    b.disabled.push_back(list->second.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

bitnet_status open_backend(const bitnet_host_v0* services, const bitnet_open_request* request,
                           bitnet_backend_v0* out, bitnet_error* err,
                           const author& description) noexcept {
  return guarded(err, "entry", [&](const reporter& report) {
    bitnet_backend_v0 table{};
    table.info = info;
    table.close = close;
    table.device_count = device_count;
    table.device_info = device_info;
    table.kernels = kernels;
    table.device_open = device_open;
    table.device_close = device_close;
    table.buffer_create = buffer_create;
    table.buffer_map = buffer_map;
    table.buffer_destroy = buffer_destroy;
    table.weight_plan = weight_plan;
    table.weights_create = weights_create;
    table.weight_write = weight_write;
    table.weight_alias = weight_alias;
    table.weight_seal = weight_seal;
    table.weights_destroy = weights_destroy;
    table.op_query = op_query;
    table.program_build = program_build;
    table.program_estimate = program_estimate;
    table.program_prepare = program_prepare;
    table.program_bind = program_bind;
    table.program_stats = program_stats;
    table.program_destroy = program_destroy;
    table.kv_pool_create = kv_pool_create;
    table.kv_copy_blocks = kv_copy_blocks;
    table.kv_export = kv_export;
    table.kv_import = kv_import;
    table.kv_pool_destroy = kv_pool_destroy;
    table.queue_create = queue_create;
    table.queue_submit = queue_submit;
    table.queue_wait = queue_wait;
    table.queue_poll = queue_poll;
    table.queue_destroy = queue_destroy;
    table.quiesce = quiesce;
    auto opened = std::make_unique<backend>(description, services);
    table.self = reinterpret_cast<bitnet_backend*>(opened.get());
    if (bitnet_status s = sdk::fill_table(services, request, out, table, {}, report); failed(s))
      return s;
    read_settings(*request, *opened);
    [[maybe_unused]] const auto* kept = opened.release();  // close() takes it back
    return BITNET_OK;
  });
}

}  // namespace bitnet::gpu
