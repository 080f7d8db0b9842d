#include "backend.hpp"

#include <algorithm>
#include <cstring>

#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/slots.hpp"
#include "bitnet/sdk/table.hpp"
#include "gpu-common/memory/kv_pool.hpp"
#include "gpu-common/memory/pool_settings.hpp"
#include "gpu-common/memory/weights.hpp"
#include "gpu-common/program/program.hpp"
#include "names.hpp"
#include "opened.hpp"

namespace bitnet::gpu {
namespace {

using sdk::failed;
using sdk::guarded;
using sdk::reporter;

template <uint64_t N>
void put(char (&to)[N], const std::string& text) {
  std::snprintf(to, N, "%s", text.c_str());
}

// sdk/slots.hpp calls the members of the classes below.

class queue_object {
 public:
  queue_object(opened& device, std::shared_ptr<running> run)
      : device_(device), run_(std::move(run)) {
    const std::scoped_lock guard(device_.queues_lock);
    device_.queues.push_back(run_);
  }
  ~queue_object() {
    guarded(nullptr, "queue_destroy",
            [&](const reporter& report) { return run_->settle(UINT64_MAX, report); });
    const std::scoped_lock guard(device_.queues_lock);
    std::erase(device_.queues, run_);
  }
  queue_object(const queue_object&) = delete;
  queue_object& operator=(const queue_object&) = delete;

  bitnet_status submit(const bitnet_step& step, steps_on& on, const reporter& report) {
    if (bitnet_status s = check_turn(step.signal_value, report); failed(s)) return s;
    return on.run(step, run_, report);
  }
  bitnet_status copy(kv_pool& pool, const uint32_t* from, const uint32_t* to, uint32_t n,
                     uint64_t signal, const reporter& report) {
    if (bitnet_status s = check_turn(signal, report); failed(s)) return s;
    return pool.copy(*run_, from, to, n, signal, report);
  }
  bitnet_status write_out(kv_pool& pool, const uint32_t* blocks, uint32_t n, uint8_t* out,
                          uint64_t bytes, uint64_t signal, const reporter& report) {
    if (bitnet_status s = check_turn(signal, report); failed(s)) return s;
    return pool.write_out(*run_, blocks, n, out, bytes, signal, report);
  }
  bitnet_status read_in(kv_pool& pool, const uint32_t* blocks, uint32_t n, const uint8_t* data,
                        uint64_t bytes, uint64_t signal, const reporter& report) {
    if (bitnet_status s = check_turn(signal, report); failed(s)) return s;
    return pool.read_in(*run_, blocks, n, data, bytes, signal, report);
  }

  bitnet_status wait(uint64_t value, uint64_t timeout_ns, const reporter& report) const {
    const uint64_t submitted = run_->submitted.load();
    if (value > submitted)
      return report.fail(
          BITNET_TIMEOUT,
          "submitted steps reach %llu of the timeline and not %llu; submit a step first",
          static_cast<unsigned long long>(submitted), static_cast<unsigned long long>(value));
    const range here(device_.watcher, "wait");
    return run_->wait(value, timeout_ns, report);
  }

  bitnet_status poll(uint64_t& value, const reporter& report) const {
    return run_->poll(value, report);
  }

 private:
  bitnet_status check_turn(uint64_t signal, const reporter& report) const {
    const uint64_t last = run_->submitted.load();
    if (signal > last) return BITNET_OK;
    return report.fail(
        BITNET_INVALID_ARGUMENT, "signal %llu is not above %llu, which a submitted step reaches",
        static_cast<unsigned long long>(signal), static_cast<unsigned long long>(last));
  }

  opened& device_;
  std::shared_ptr<running> run_;
};

class device_object;

class backend {
 public:
  backend(const author& a, const bitnet_host_v0* services) : about_(a), services_(services) {}

  void read_settings(const bitnet_open_request& request);

  bitnet_backend_info info() const {
    return {.struct_size = sizeof(bitnet_backend_info),
            .life_flags = about_.life_flags,
            .name = sdk::to_str(about_.name),
            .version = sdk::to_str(about_.version),
            .vendor = sdk::to_str(about_.vendor),
            .license = sdk::to_str(about_.license),
            .driver = sdk::to_str(about_.driver)};
  }
  bitnet_status device_count(uint32_t& out, const reporter& report);
  bitnet_status device_info(uint32_t index, bitnet_device_info& out, const reporter& report);
  bitnet_status kernels(uint32_t index, std::vector<bitnet_kernel_info>& out,
                        const reporter& report);
  bitnet_status open(const bitnet_device_request& request, std::unique_ptr<device_object>& out,
                     const reporter& report);
  bitnet_status quiesce(uint64_t timeout_ns, const reporter& report);

  std::vector<uint32_t> levels_of(const std::vector<bitnet_op>& ops, const weights& all) const;
  void forget(opened* device) {
    const std::scoped_lock guard(lock_);
    std::erase(devices_, device);
  }

 private:
  // Loads the platform on first use, because the entry call must be cheap.
  bitnet_status load(platform*& out, const reporter& report) {
    const std::scoped_lock guard(lock_);
    if (!loaded_) {
      if (bitnet_status s = read_pool_settings(user_, pooled_, report); failed(s)) return s;
      if (bitnet_status s = about_.load(services_, user_, loaded_, report); failed(s)) return s;
    }
    out = loaded_.get();
    return BITNET_OK;
  }
  bitnet_status find(uint32_t index, platform*& out, const reporter& report);
  bool is_disabled(const std::string& id) const {
    return std::find(disabled_.begin(), disabled_.end(), id) != disabled_.end();
  }

  const author& about_;
  const sdk::host services_;
  settings user_;
  memory_pool_config pooled_;          // for every device
  std::vector<std::string> disabled_;  // kernel ids
  std::mutex lock_;
  std::unique_ptr<platform> loaded_;
  std::vector<opened*> devices_;  // for quiesce
};

class device_object {
 public:
  device_object(backend& owner, std::unique_ptr<device> driver, const sdk::host& host,
                const char* name, const std::vector<std::string>& disabled, uint64_t memory_bytes,
                const memory_pool_config& pooled)
      : owner_(owner), open_(std::move(driver), host, name, disabled, memory_bytes, pooled) {}
  ~device_object() { owner_.forget(&open_); }
  device_object(const device_object&) = delete;
  device_object& operator=(const device_object&) = delete;

  opened& open() noexcept { return open_; }

  bitnet_status status(bitnet_device_status& out, const reporter& report) const {
    return open_.status(out, report);
  }
  bitnet_status query(const bitnet_query_request& request, std::vector<uint32_t>& levels,
                      bitnet_graph_estimate& out, const reporter& report);
  bitnet_status make_buffer(const bitnet_buffer_request& request, std::unique_ptr<step_buffer>& out,
                            const reporter& report) {
    if (const uint64_t most = alignment_of(open_.capabilities()); request.alignment_bytes > most)
      return report.fail(BITNET_UNSUPPORTED, "an alignment of %llu bytes; expected at most %llu",
                         static_cast<unsigned long long>(request.alignment_bytes),
                         static_cast<unsigned long long>(most));
    out = std::make_unique<step_buffer>(open_);
    out->bytes = request.bytes;
    return open_.pool.take(request.bytes, memory_place::host, out->memory, report);
  }
  bitnet_status plan(const bitnet_tensor_desc* desc, bitnet_weight_plan& out,
                     const reporter& report) const {
    return weight_set::plan(open_, desc, out, report);
  }
  std::unique_ptr<weight_set> make_weights(uint64_t cancel_token) {
    return std::make_unique<weight_set>(open_, cancel_token);
  }
  std::unique_ptr<program> make_program() { return std::make_unique<program>(open_); }
  bitnet_status make_pool(const bitnet_kv_config* config, std::unique_ptr<kv_pool>& out,
                          const reporter& report) {
    out = std::make_unique<kv_pool>(open_);
    return out->create(config, report);
  }
  // Drivers have one queue for all, so a priority would change nothing.
  bitnet_status make_queue(const bitnet_queue_request&, std::unique_ptr<queue_object>& out,
                           const reporter& report) {
    std::unique_ptr<gpu::queue> made;
    {
      const std::scoped_lock guard(open_.lock);
      if (bitnet_status s = open_.driver->make_queue(made, report); failed(s)) return s;
    }
    out = std::make_unique<queue_object>(open_,
                                         std::make_shared<running>(std::move(made), open_.lock));
    return BITNET_OK;
  }

 private:
  backend& owner_;
  opened open_;
};

struct objects {
  using backend = gpu::backend;
  using device = device_object;
  using buffer = step_buffer;
  using weights = weight_set;
  using kv_pool = gpu::kv_pool;
  using program = gpu::program;
  using binding = steps_on;
  using queue = queue_object;
};

bitnet_status backend::find(uint32_t index, platform*& out, const reporter& report) {
  if (bitnet_status s = load(out, report); failed(s)) return s;
  if (index < out->devices().size()) return BITNET_OK;
  return report.fail(BITNET_INVALID_ARGUMENT,
                     "device %u: this backend has %zu devices; list them again", index,
                     out->devices().size());
}

bitnet_status backend::device_count(uint32_t& out, const reporter& report) {
  platform* found = nullptr;
  if (bitnet_status s = load(found, report); failed(s)) return s;
  out = static_cast<uint32_t>(found->devices().size());
  return BITNET_OK;
}

bitnet_status backend::device_info(uint32_t index, bitnet_device_info& out,
                                   const reporter& report) {
  platform* found = nullptr;
  if (bitnet_status s = find(index, found, report); failed(s)) return s;
  const facts& f = found->devices()[index];
  out.device_class = f.device_class;
  put(out.name, f.name);
  put(out.uuid, f.uuid);
  put(out.pci_address, f.pci_address);
  put(out.arch, f.arch);
  put(out.driver_version, f.driver_version);
  out.memory_total_bytes = f.memory_total_bytes;
  out.compute_units = f.compute_units;
  out.buffer_alignment_bytes = std::max(f.capabilities.binding_alignment, 64u);
  out.max_allocation_bytes = f.capabilities.max_allocation_bytes;
  out.kv_dtypes = kv_dtypes;
  out.attention_flags = BITNET_ATTENTION_WINDOW | BITNET_ATTENTION_LAYER_WINDOW;
  out.logits_flags = f.capabilities.has_top_head ? BITNET_LOGITS_LARGEST : 0;
  return BITNET_OK;
}

bitnet_status backend::kernels(uint32_t index, std::vector<bitnet_kernel_info>& out,
                               const reporter& report) {
  platform* found = nullptr;
  if (bitnet_status s = find(index, found, report); failed(s)) return s;
  capabilities can = found->devices()[index].capabilities;
  can.precisions = found->rounded_products(index);
  can.rounded_heads = found->rounded_heads(index);
  for (const named_kernel& k : all_kernels(about_.name, can)) {
    if (is_disabled(k.id)) continue;
    bitnet_kernel_info kernel{};
    kernel.op = k.op;
    kernel.format = k.format;
    kernel.level = k.level;
    kernel.exact = k.exact;
    kernel.precision = k.precision;
    put(kernel.id, k.id);
    out.push_back(kernel);
  }
  for (const kernel_alternative& k : found->alternatives(index)) {
    const std::string id = k.name + "." + about_.name;
    if (is_disabled(id)) continue;
    bitnet_kernel_info kernel{};
    kernel.op = k.op;
    kernel.format = k.format;
    kernel.level = BITNET_LEVEL_OPTIMISED;
    kernel.exact = k.exact;
    kernel.precision = k.precision;
    put(kernel.id, id);
    out.push_back(kernel);
  }
  return BITNET_OK;
}

bitnet_status backend::open(const bitnet_device_request& request,
                            std::unique_ptr<device_object>& out, const reporter& report) {
  platform* found = nullptr;
  if (bitnet_status s = find(request.index, found, report); failed(s)) return s;
  if (services_.cancelled(request.cancel_token))
    return report.fail(BITNET_CANCELLED, "the caller cancelled opening the device");
  std::unique_ptr<device> driver;
  if (bitnet_status s = found->open(request.index, driver, report); failed(s)) return s;
  out = std::make_unique<device_object>(*this, std::move(driver), services_, about_.name, disabled_,
                                        request.memory_bytes, pooled_);
  const std::scoped_lock guard(lock_);
  devices_.push_back(&out->open());
  return BITNET_OK;
}

bitnet_status backend::quiesce(uint64_t timeout_ns, const reporter& report) {
  const std::scoped_lock guard(lock_);
  const uint64_t start = services_.now_ns();
  for (opened* device : devices_) {
    const uint64_t spent = services_.now_ns() - start;
    const uint64_t left = spent < timeout_ns ? timeout_ns - spent : 0;
    if (bitnet_status s = device->settle(left, report); failed(s)) return s;
  }
  return BITNET_OK;
}

std::vector<uint32_t> backend::levels_of(const std::vector<bitnet_op>& ops,
                                         const weights& all_weights) const {
  const capabilities none;  // no optional kernels
  const std::vector<named_kernel> all = all_kernels(about_.name, none);
  std::vector<uint32_t> levels(ops.size(), BITNET_LEVEL_NONE);
  for (uint64_t i = 0; i < ops.size(); ++i) {
    const uint32_t w = ops[i].weights[0];
    const uint32_t format =
        w < all_weights.size() ? all_weights.at(w).view.format : BITNET_FORMAT_NONE;
    for (const named_kernel& k : all) {
      // Rank-1 weights are widened to f32, so a norm takes every dense format.
      const bool fits = k.format == BITNET_FORMAT_NONE
                            ? format != BITNET_FORMAT_TERNARY2
                            : format == BITNET_FORMAT_NONE || format == k.format;
      if (k.op != ops[i].op || k.fused || !fits || is_disabled(k.id)) continue;
      levels[i] = k.level;
      break;
    }
  }
  return levels;
}

bitnet_status device_object::query(const bitnet_query_request& request,
                                   std::vector<uint32_t>& levels, bitnet_graph_estimate& out,
                                   const reporter& report) {
  weight_set planned(open_);
  if (bitnet_status s = planned.create(request.descs, request.desc_size, request.n_descs,
                                       sdk::scales_are::to_come, report);
      failed(s))
    return s;
  weights all;
  all.add(planned);
  std::vector<bitnet_op> ops;
  if (bitnet_status s = sdk::read_ops(request.graph, ops, report); failed(s)) return s;
  levels = owner_.levels_of(ops, all);
  for (uint64_t i = 0; i < ops.size(); ++i)
    if (!fits_group(open_.capabilities(), ops[i])) levels[i] = BITNET_LEVEL_NONE;
  for (uint64_t i = 0; i < ops.size(); ++i)
    if (levels[i] == BITNET_LEVEL_NONE && !sdk::is_composite(ops[i])) return BITNET_OK;
  program steps(open_);
  if (bitnet_status s = steps.build(request.graph, all, request.options, 0, report); failed(s))
    return s;
  out.weight_bytes = planned.device_bytes();
  out.scratch_bytes = out.binding_bytes = steps.binding_bytes();
  if (!request.kv) return BITNET_OK;
  bitnet_kv_config one{};
  if (bitnet_status s = sdk::receive(request.kv, offsetof(bitnet_kv_config, reserved_0), one,
                                     "KV configuration", report);
      failed(s))
    return s;
  one.n_blocks = 1;
  one.n_states = one.n_states != 0;
  kv_pool pool(open_);
  std::vector<uint64_t> sizes;
  if (bitnet_status s = pool.plan(&one, sizes, report); failed(s)) return s;
  out.kv_block_bytes = pool.block_bytes();
  out.state_bytes = pool.state_bytes();
  return BITNET_OK;
}

// "disable" lists ids of kernels that were found wrong on this machine, by the self-test of the
// host or by this backend while it was probed; "head" = "full" switches the two-stage head off.
void backend::read_settings(const bitnet_open_request& request) {
  for (uint32_t i = 0; i < request.n_params; ++i)
    user_.insert_or_assign(std::string(sdk::to_view(request.params[i].key)),
                           std::string(sdk::to_view(request.params[i].value)));
  user_.insert_or_assign("purpose", request.purpose == BITNET_PURPOSE_LOAD    ? "load"
                                    : request.purpose == BITNET_PURPOSE_PROBE ? "probe"
                                                                              : "conformance");
  if (const auto head = user_.find("head"); head != user_.end() && head->second == "full")
    for (const sdk::format& f : sdk::formats) disabled_.push_back(top_head_name(f.id, about_.name));
  const auto list = user_.find("disable");
  if (list == user_.end()) return;
  for (size_t begin = 0; begin < list->second.size();) {
    const size_t end = std::min(list->second.find(',', begin), list->second.size());
    disabled_.push_back(list->second.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

bitnet_status open_backend(const bitnet_host_v0* services, const bitnet_open_request* request,
                           bitnet_backend_v0* out, bitnet_error* err, const author& description,
                           sdk::minors spoken) noexcept {
  return guarded(err, "entry", [&](const reporter& report) {
    auto opened = std::make_unique<backend>(description, services);
    bitnet_backend_v0 table = sdk::slots<objects>::table();
    table.self = reinterpret_cast<bitnet_backend*>(opened.get());
    if (bitnet_status s = sdk::fill_table(services, request, out, table, spoken, report); failed(s))
      return s;
    opened->read_settings(*request);
    [[maybe_unused]] const auto* kept = opened.release();  // close() takes it back
    return BITNET_OK;
  });
}

}  // namespace bitnet::gpu
