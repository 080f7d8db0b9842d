#pragma once
// plugins/gpu-common over a device that is only described: it has the limits that a test says, and
// writes down what it is given to run in place of running it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "gpu-common/backend.hpp"
#include "gpu-common/plan/parameters.hpp"
#include "gpu-common/streams/launch_recording.hpp"
#include "runner.hpp"

namespace bitnet::parity {

// Of a binding: which buffer, by the order in which they were made, and the bytes in it.
struct place {
  uint64_t buffer = 0, offset = 0, bytes = 0;
  bool operator==(const place&) const = default;
  bool meets(const place& other) const {
    return buffer == other.buffer && offset < other.offset + other.bytes &&
           other.offset < offset + bytes;
  }
};

struct written_command {
  gpu::kernel_spec spec;
  std::vector<place> bindings;
  std::vector<uint32_t> params;
  uint32_t groups_x = 0, groups_y = 0;
  bool after = false;

  template <class Params>
  Params as() const {
    Params out{};
    EXPECT_EQ(params.size() * 4, sizeof out);
    std::memcpy(&out, params.data(), std::min(params.size() * 4, sizeof out));
    return out;
  }
};
using written_commands = std::vector<written_command>;

// What all that a device made has in common.
struct notes {
  std::vector<uint64_t> sizes;     // of each buffer
  std::vector<uint64_t> gathered;  // bytes that each recording copies to the device
  std::vector<written_commands> submitted;
};

// The API of plugins/gpu-common/streams/launch_recording.hpp, as far as recordings gather memory
// by it.
struct described_api {
  struct context {
    notes* to;
  };
  class buffer final : public gpu::buffer {
   public:
    buffer(const context& c, uint64_t bytes) : number(c.to->sizes.size()), all_(bytes) {
      c.to->sizes.push_back(bytes);
    }
    bitnet_status create(gpu::memory_place where, const sdk::reporter&) {
      if (where == gpu::memory_place::host) host_.resize(all_);
      return BITNET_OK;
    }
    uint64_t size() const noexcept override { return all_; }
    void* mapped() const noexcept override { return host_.empty() ? nullptr : host_.data(); }
    const uint64_t number;

   private:
    const uint64_t all_;
    mutable std::vector<uint8_t> host_;
  };
  struct kernel final : gpu::kernel {
    gpu::kernel_spec spec;
  };
  struct grid {};
  struct event {};
  struct joined_launch {};
  struct current {
    explicit current(const context&) {}
    bool entered() const { return false; }
  };
  static bool milliseconds(const context&, event, event, float&) { return false; }
};

class described_device final : public gpu::device {
 public:
  described_device(const gpu::facts& about, notes& to) : about_(about), context_{&to} {}
  const gpu::facts& describe() const noexcept override { return about_; }

  bitnet_status allocate(uint64_t bytes, gpu::memory_place where, std::unique_ptr<gpu::buffer>& out,
                         const sdk::reporter& report) override {
    EXPECT_LE(bytes, about_.capabilities.max_allocation_bytes);
    auto made = std::make_unique<described_api::buffer>(context_, bytes);
    const bitnet_status status = made->create(where, report);
    out = std::move(made);
    return status;
  }
  bitnet_status upload(gpu::buffer& to, uint64_t offset, const void*, uint64_t bytes,
                       const sdk::reporter&) override {
    EXPECT_LE(offset + bytes, to.size());
    return BITNET_OK;
  }
  bitnet_status download(const gpu::buffer&, uint64_t, void*, uint64_t,
                         const sdk::reporter& report) override {
    return report.fail(BITNET_UNSUPPORTED, "nothing was computed");
  }
  bitnet_status make_kernel(const gpu::kernel_spec& spec, std::unique_ptr<gpu::kernel>& out,
                            const sdk::reporter&) override {
    auto made = std::make_unique<described_api::kernel>();
    made->spec = spec;
    out = std::move(made);
    return BITNET_OK;
  }
  bitnet_status record(std::span<const gpu::command> commands, bool,
                       std::unique_ptr<gpu::recording>& out, const sdk::reporter& report) override {
    auto made = std::make_unique<recording>(context_);
    for (const gpu::command& c : commands) made->commands.push_back(written(c));
    bitnet_status status = BITNET_OK;
    if (about_.quirks.most_gathered != 0) status = made->gather_from(commands, report);
    out = std::move(made);
    return status;
  }
  bitnet_status make_queue(std::unique_ptr<gpu::queue>& out, const sdk::reporter&) override {
    out = std::make_unique<queue>(*context_.to);
    return BITNET_OK;
  }

 private:
  struct recording final : gpu::launch_recording<described_api> {
    explicit recording(const described_api::context& c) : launch_recording(c, false) {}
    bitnet_status gather_from(std::span<const gpu::command> all, const sdk::reporter& report) {
      const bitnet_status status = prepare_gathering(all, report);
      context_.to->gathered.push_back(facts_ ? facts_->size() : 0);
      return status;
    }
    written_commands commands;
  };
  struct queue final : gpu::queue {
    explicit queue(notes& to) : notes_(to) {}
    bitnet_status submit(gpu::recording& work, uint64_t value, const sdk::reporter&) override {
      notes_.submitted.push_back(static_cast<recording&>(work).commands);
      reached_ = value;
      return BITNET_OK;
    }
    bitnet_status wait(uint64_t, uint64_t, const sdk::reporter&) override { return BITNET_OK; }
    bitnet_status poll(uint64_t& value, const sdk::reporter&) override {
      value = reached_;
      return BITNET_OK;
    }
    notes& notes_;
    uint64_t reached_ = 0;
  };

  written_command written(const gpu::command& c) const {
    written_command out;
    EXPECT_NE(c.run, nullptr);
    out.spec = static_cast<const described_api::kernel*>(c.run)->spec;
    for (const gpu::binding& b : c.bindings) {
      EXPECT_NE(b.memory, nullptr);
      EXPECT_EQ(b.offset % about_.capabilities.binding_alignment, 0u);
      EXPECT_LE(b.offset + b.bytes, b.memory->size());
      EXPECT_LE(b.bytes, about_.capabilities.max_binding_bytes);
      out.bindings.push_back(
          {static_cast<const described_api::buffer*>(b.memory)->number, b.offset, b.bytes});
    }
    out.params = c.params;
    out.groups_x = c.groups_x;
    out.groups_y = c.groups_y;
    out.after = c.after;
    return out;
  }

  const gpu::facts about_;
  const described_api::context context_;
};

// A backend with one such device, "described", and a model on it. Throws call_failed if the model
// is rejected.
class described {
 public:
  described(const gpu::facts& about, const model& m, const runner_options& options,
            const plugin::settings& user = {})
      : host_(1) {
    next = about;
    to = &notes_;
    static const gpu::author author{"api", "1", "org.example", "Apache-2.0", "none", 0, load};
    std::vector<bitnet_param> params;
    for (const auto& [key, value] : user) params.push_back({sdk::to_str(key), sdk::to_str(value)});
    const bitnet_open_request request = to_load(params);
    table_.struct_size = sizeof table_;
    must([&](bitnet_error* e) {
      return gpu::open_backend(host_.table(), &request, &table_, e, author);
    });
    try {
      run_ = std::make_unique<runner>(table_, m, options);
    } catch (...) {
      table_.close(table_.self);
      throw;
    }
  }
  ~described() {
    run_.reset();
    table_.close(table_.self);
  }
  described(const described&) = delete;
  described& operator=(const described&) = delete;

  // What a step of so many tokens runs, of one sequence and with logits of the last `outputs`.
  written_commands step(uint32_t n_tokens, uint32_t outputs = 1, uint32_t top = 0) {
    run_->rewind(0);
    bitnet_step step = run_->prepare(std::vector<token_in>(n_tokens, token_in{1}));
    step.n_outputs = outputs;
    for (uint32_t i = 0; i < outputs; ++i)
      run_->output_rows[i] = static_cast<int32_t>(n_tokens - outputs + i);
    step.top_logits = top;
    const outcome o = run_->submit(step);
    EXPECT_EQ(o.status, BITNET_OK) << o.message;
    return notes_.submitted.back();
  }
  const notes& seen() const { return notes_; }
  // The bytes that graph_query says a binding of this model needs.
  uint64_t needed(const model& m, const bitnet_program_options& bounds) const {
    bitnet_device* device = nullptr;
    must([&](bitnet_error* e) { return conformance::open_device(table_, 0, &device, e); });
    const std::vector<bitnet_port> ports = m.ports();
    const bitnet_graph graph = m.graph(ports);
    const std::vector<bitnet_tensor_desc> descs = m.descs();
    const bitnet_query_request r = conformance::query_request(graph, descs, bounds);
    std::vector<uint32_t> levels(m.ops.size());
    bitnet_graph_estimate estimate{};
    estimate.struct_size = sizeof estimate;
    must([&](bitnet_error* e) {
      return table_.graph_query(device, &r, levels.data(), &estimate, e);
    });
    table_.device_close(device);
    return estimate.scratch_bytes;
  }
  uint64_t calls(const std::string& kernel) const { return run_->calls(kernel); }

 private:
  struct platform final : gpu::platform {
    const std::vector<gpu::facts>& devices() const noexcept override { return all; }
    bitnet_status open(uint32_t, std::unique_ptr<gpu::device>& out, const sdk::reporter&) override {
      out = std::make_unique<described_device>(all[0], *to);
      return BITNET_OK;
    }
    std::vector<gpu::facts> all;
    notes* to = nullptr;
  };
  static bitnet_status load(const sdk::host&, const gpu::settings&,
                            std::unique_ptr<gpu::platform>& out, const sdk::reporter&) {
    auto made = std::make_unique<platform>();
    made->all = {next};
    made->to = to;
    out = std::move(made);
    return BITNET_OK;
  }

  // For load(), which gets nothing else.
  static inline gpu::facts next;
  static inline notes* to = nullptr;

  notes notes_;
  tiny_host host_;
  bitnet_backend_v0 table_{};
  std::unique_ptr<runner> run_;
};

}  // namespace bitnet::parity
