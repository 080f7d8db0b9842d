// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// The classes behind the handles of tier 0, with the members that slots.hpp calls.

#include <algorithm>
#include <atomic>
#include <memory>

#include "bitnet/abi/backend.h"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/handle.hpp"
#include "bitnet/sdk/host.hpp"
#include "bitnet/sdk/interpreter/kernel.hpp"
#include "bitnet/sdk/interpreter/kv_pool.hpp"
#include "bitnet/sdk/interpreter/program.hpp"
#include "bitnet/sdk/interpreter/weights.hpp"

namespace bitnet::sdk::interpreter {

// A step ends before submit() returns.
class queue {
 public:
  bitnet_status submit(const bitnet_step& step, binding& on, const reporter& report) {
    return in_turn(step.signal_value, report, [&] { return on.of().run(step, on, report); });
  }
  bitnet_status copy(kv_pool& pool, const uint32_t* from, const uint32_t* to, uint32_t n,
                     uint64_t signal, const reporter& report) {
    return in_turn(signal, report, [&] { return pool.copy(from, to, n, report); });
  }
  bitnet_status write_out(kv_pool& pool, const uint32_t* blocks, uint32_t n, uint8_t* out,
                          uint64_t bytes, uint64_t signal, const reporter& report) {
    return in_turn(signal, report, [&] { return pool.write_out(blocks, n, out, bytes, report); });
  }
  bitnet_status read_in(kv_pool& pool, const uint32_t* blocks, uint32_t n, const uint8_t* data,
                        uint64_t bytes, uint64_t signal, const reporter& report) {
    return in_turn(signal, report, [&] { return pool.read_in(blocks, n, data, bytes, report); });
  }

  bitnet_status wait(uint64_t value, uint64_t, const reporter& report) const {
    const uint64_t now = timeline_.load();
    if (now >= value) return BITNET_OK;
    return report.fail(
        BITNET_TIMEOUT,
        "the timeline is at %llu and no submitted step reaches %llu; submit one first",
        static_cast<unsigned long long>(now), static_cast<unsigned long long>(value));
  }

  bitnet_status poll(uint64_t& value, const reporter&) const {
    value = timeline_.load();
    return BITNET_OK;
  }

 private:
  template <class Work>
  bitnet_status in_turn(uint64_t signal, const reporter& report, const Work& work) {
    const uint64_t now = timeline_.load();
    if (signal <= now)
      return report.fail(
          BITNET_INVALID_ARGUMENT, "signal %llu is not above the timeline, which is at %llu",
          static_cast<unsigned long long>(signal), static_cast<unsigned long long>(now));
    if (bitnet_status s = work(); failed(s)) return s;
    timeline_.store(signal);
    return BITNET_OK;
  }

  std::atomic<uint64_t> timeline_{0};
};

// The only device of a backend. The backend outlives it.
class device {
 public:
  device(const definition& author, const host& services, uint64_t memory_bytes)
      : author_(author),
        lent_(memory_bytes, {author.large_pages, nodes::of_workers(services)}),
        host_(services, lent_) {
    bitnet_device_status first{};
    if (author_.status) author_.status(first);
  }

  const definition& author() const noexcept { return author_; }
  const host& services() const noexcept { return host_; }

  bitnet_status status(bitnet_device_status& out, const reporter& report) const {
    if (!author_.status)
      return report.fail(BITNET_UNSUPPORTED,
                         "this backend does not report the status of its device");
    author_.status(out);
    return BITNET_OK;
  }

  bitnet_status query(const bitnet_query_request& request, std::vector<uint32_t>& levels,
                      bitnet_graph_estimate& out, const reporter& report) const {
    weight_set planned(author_, host_);
    if (bitnet_status s = planned.create(request.descs, request.desc_size, request.n_descs,
                                         scales_are::to_come, report);
        failed(s))
      return s;
    program::weights all;
    all.add(planned);
    if (bitnet_status s =
            program(author_, host_)
                .query(request.graph, all, request.options, levels, out.scratch_bytes, report);
        failed(s))
      return s;
    out.weight_bytes = planned.planned_bytes();
    if (!request.kv) return BITNET_OK;
    bitnet_kv_config one{};
    if (bitnet_status s = receive(request.kv, offsetof(bitnet_kv_config, reserved_0), one,
                                  "KV configuration", report);
        failed(s))
      return s;
    one.n_blocks = 1;
    one.n_states = one.n_states != 0;
    kv_storage storage{};
    uint64_t bytes = 0;
    const bitnet_status s = describe(&one, author_.device.kv_dtypes, storage, bytes, report);
    out.kv_block_bytes = storage.block_bytes;
    out.state_bytes = 4 * storage.state_elements;
    return s;
  }

  bitnet_status make_buffer(const bitnet_buffer_request& request, std::unique_ptr<memory>& out,
                            const reporter& report) const {
    constexpr uint64_t most_alignment = uint64_t{2} << 20;
    if (request.alignment_bytes > most_alignment)
      return report.fail(BITNET_UNSUPPORTED, "an alignment of %llu bytes; expected at most %llu",
                         static_cast<unsigned long long>(request.alignment_bytes),
                         static_cast<unsigned long long>(most_alignment));
    out = std::make_unique<memory>(request.bytes, host_.lent(),
                                   std::max(memory::alignment, request.alignment_bytes));
    return BITNET_OK;
  }

  bitnet_status plan(const bitnet_tensor_desc* desc, bitnet_weight_plan& out,
                     const reporter& report) const {
    tensor t;
    if (bitnet_status s = describe(desc, t, scales_are::to_come, report); failed(s)) return s;
    sdk::plan(author_, t, out);
    return BITNET_OK;
  }

  std::unique_ptr<weight_set> make_weights(uint64_t cancel_token) const {
    return std::make_unique<weight_set>(author_, host_, cancel_token);
  }
  std::unique_ptr<program> make_program() const {
    return std::make_unique<program>(author_, host_);
  }

  bitnet_status make_pool(const bitnet_kv_config* config, std::unique_ptr<kv_pool>& out,
                          const reporter& report) const {
    out = std::make_unique<kv_pool>();
    return out->create(config, author_.device.kv_dtypes, host_.lent(), report);
  }

  // Priorities are ignored: the device runs one queue's step at a time.
  bitnet_status make_queue(const bitnet_queue_request&, std::unique_ptr<queue>& out,
                           const reporter&) const {
    out = std::make_unique<queue>();
    return BITNET_OK;
  }

 private:
  const definition& author_;
  mutable budget lent_;
  const host host_;
};

struct backend {
  explicit backend(const bitnet_host_v0* services) : host_services(services) {}

  bitnet_backend_info info() const {
    return {.struct_size = sizeof(bitnet_backend_info),
            .life_flags = author.life_flags,
            .name = to_str(author.name),
            .version = to_str(author.version),
            .vendor = to_str(author.vendor),
            .license = to_str(author.license),
            .driver = to_str("")};
  }

  bitnet_status device_count(uint32_t& out, const reporter& report) const {
    if (bitnet_status s = check_available(report); failed(s)) return s;
    out = 1;
    return BITNET_OK;
  }

  bitnet_status device_info(uint32_t index, bitnet_device_info& out, const reporter& report) const {
    if (bitnet_status s = check_index(index, report); failed(s)) return s;
    out = author.device;
    out.buffer_alignment_bytes = memory::alignment;
    return BITNET_OK;
  }

  bitnet_status kernels(uint32_t index, std::vector<bitnet_kernel_info>& out,
                        const reporter& report) const {
    if (bitnet_status s = check_index(index, report); failed(s)) return s;
    const auto list = [&](uint32_t op, uint32_t format, uint32_t level, uint32_t exact,
                          const std::string& id) {
      bitnet_kernel_info kernel{};
      kernel.op = op;
      kernel.format = format;
      kernel.level = level;
      kernel.exact = exact;
      std::snprintf(kernel.id, sizeof kernel.id, "%s", id.c_str());
      out.push_back(kernel);
    };
    for (const composite& c : author.composites)
      list(c.op, c.format, BITNET_LEVEL_FUSED, c.exact, c.id);
    for (const primitive& p : author.primitives) list(p.op, p.format, p.level, p.exact, p.id);
    for (const bitnet_kernel_info& k : author.others) list(k.op, k.format, k.level, k.exact, k.id);
    return BITNET_OK;
  }

  bitnet_status open(const bitnet_device_request& request, std::unique_ptr<device>& out,
                     const reporter& report) const {
    if (bitnet_status s = check_index(request.index, report); failed(s)) return s;
    if (host_services.cancelled(request.cancel_token))
      return report.fail(BITNET_CANCELLED, "the caller cancelled opening the device");
    if (bitnet_status s = check_available(report); failed(s)) return s;
    out = std::make_unique<device>(author, host_services, request.memory_bytes);
    return BITNET_OK;
  }

  // Nothing is pending: the device has no threads.
  bitnet_status quiesce(uint64_t, const reporter&) const { return BITNET_OK; }

  host host_services;
  definition author;

 private:
  static bitnet_status check_index(uint32_t index, const reporter& report) {
    if (index == 0) return BITNET_OK;
    return report.fail(BITNET_INVALID_ARGUMENT, "device %u: there is only device 0", index);
  }
  bitnet_status check_available(const reporter& report) const {
    if (author.why_unavailable.empty()) return BITNET_OK;
    return report.fail(BITNET_UNAVAILABLE, "%s", author.why_unavailable.c_str());
  }
};

struct objects {
  using backend = interpreter::backend;
  using device = interpreter::device;
  using buffer = memory;
  using weights = weight_set;
  using kv_pool = sdk::kv_pool;
  using program = sdk::program;
  using binding = sdk::binding;
  using queue = interpreter::queue;
};

}  // namespace bitnet::sdk::interpreter
