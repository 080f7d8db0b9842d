// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// What stands behind the handles of tier 0, with the members that slots.hpp calls.

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

// Everything is ready after program_build; only the bound is checked.
struct runnable : program {
  using program::program;

  bitnet_status prepare(uint32_t n_tokens, const reporter& report) const {
    uint64_t bytes = 0;
    return estimate(n_tokens, bytes, report);
  }

  bitnet_status bind(const bitnet_step_buffers& b, const reporter& report) {
    const auto see = [](bitnet_buffer* buffer) {
      const memory* m = handle<bitnet_buffer, memory>::get(buffer);
      return m ? bound_buffer{m->data(), m->size()} : bound_buffer{};
    };
    return program::bind({see(b.tokens), see(b.positions), see(b.sequences), see(b.slots),
                          see(b.block_tables), see(b.output_rows), see(b.logits)},
                         report);
  }
};

// Steps end before submit returns.
class queue {
 public:
  bitnet_status submit(const bitnet_step& step, runnable& steps, const kv_pool* pool,
                       const reporter& report) {
    const uint64_t now = timeline_.load();
    if (step.signal_value <= now)
      return report.fail(BITNET_INVALID_ARGUMENT, "signal %llu, the timeline is at %llu already",
                         static_cast<unsigned long long>(step.signal_value),
                         static_cast<unsigned long long>(now));
    if (bitnet_status s = steps.run(step, pool, report); failed(s)) return s;
    timeline_.store(step.signal_value);
    return BITNET_OK;
  }

  bitnet_status wait(uint64_t value, uint64_t, const reporter& report) const {
    const uint64_t now = timeline_.load();
    if (now >= value) return BITNET_OK;
    return report.fail(BITNET_TIMEOUT, "the timeline is at %llu and no submitted step reaches %llu",
                       static_cast<unsigned long long>(now),
                       static_cast<unsigned long long>(value));
  }

  bitnet_status poll(uint64_t& value, const reporter&) const {
    value = timeline_.load();
    return BITNET_OK;
  }

 private:
  std::atomic<uint64_t> timeline_{0};
};

// The only device of a backend, which outlives it.
class device {
 public:
  device(const definition& author, const host& services) : author_(author), host_(services) {}

  const definition& author() const noexcept { return author_; }
  const host& services() const noexcept { return host_; }

  void levels_of(const std::vector<bitnet_op>& ops, const uint32_t* of_weights,
                 uint32_t* levels) const {
    for (uint64_t i = 0; i < ops.size(); ++i) levels[i] = level_of(ops[i].op, of_weights[i]);
  }

  bitnet_status make_buffer(uint64_t bytes, std::unique_ptr<memory>& out, const reporter&) const {
    out = std::make_unique<memory>(bytes);
    return BITNET_OK;
  }

  bitnet_status plan(const bitnet_tensor_desc* desc, bitnet_weight_plan& out,
                     const reporter& report) const {
    tensor t;
    if (bitnet_status s = describe(desc, t, report); failed(s)) return s;
    sdk::plan(t, out);
    return BITNET_OK;
  }

  std::unique_ptr<weight_set> make_weights() const {
    return std::make_unique<weight_set>(author_, host_);
  }
  std::unique_ptr<runnable> make_program() const {
    return std::make_unique<runnable>(author_, host_);
  }

  bitnet_status make_pool(const bitnet_kv_config* config, std::unique_ptr<kv_pool>& out,
                          const reporter& report) const {
    out = std::make_unique<kv_pool>();
    return out->create(config, author_.device.kv_dtypes, report);
  }

  bitnet_status make_queue(std::unique_ptr<queue>& out, const reporter&) const {
    out = std::make_unique<queue>();
    return BITNET_OK;
  }

 private:
  uint32_t level_of(uint32_t op, uint32_t format) const {
    // Rank-1 weights are widened to f32, so a norm takes every dense format.
    const bool vector = op == BITNET_OP_RMS_NORM || op == BITNET_OP_ROPE;
    for (const primitive& p : author_.primitives) {
      const bool fits = p.format == BITNET_FORMAT_NONE || format == BITNET_FORMAT_NONE ||
                        p.format == format || (vector && format != BITNET_FORMAT_TERNARY2);
      if (p.op == op && fits) return p.level;
    }
    for (const composite& c : author_.composites)
      if (c.op == op) return BITNET_LEVEL_FUSED;
    return BITNET_LEVEL_NONE;
  }

  const definition& author_;
  const host& host_;
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

  bitnet_status open(uint32_t index, std::unique_ptr<device>& out, const reporter& report) const {
    if (bitnet_status s = check_index(index, report); failed(s)) return s;
    if (bitnet_status s = check_available(report); failed(s)) return s;
    out = std::make_unique<device>(author, host_services);
    return BITNET_OK;
  }

  // There are no threads, and nothing is pending.
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
  using program = runnable;
  using queue = interpreter::queue;
};

}  // namespace bitnet::sdk::interpreter
