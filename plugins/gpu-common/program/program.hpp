#pragma once
// A compiled graph with its ports. It is recorded once for each size of step, then submitted
// repeatedly.
//
// Buckets  a recording is made for a number of tokens and of outputs, rounded up to the program's
//          buckets; kernels read the real counts from the step header.
// Threads  steps of one binding run one at a time: the next waits for the last. Steps of different
//          bindings share nothing and may run concurrently.

#include <mutex>
#include <vector>

#include "bitnet/sdk/compute/arena.hpp"
#include "bitnet/sdk/compute/graph.hpp"
#include "bitnet/sdk/compute/step.hpp"
#include "gpu-common/memory/kv_pool.hpp"
#include "gpu-common/plan/plan.hpp"
#include "rotations.hpp"

namespace bitnet::gpu {

// Memory as buffer_create made it. Running steps may use it until it is destroyed.
struct step_buffer {
  explicit step_buffer(opened& from) noexcept : device(from) {}
  ~step_buffer() { device.settle(); }
  step_buffer(const step_buffer&) = delete;
  step_buffer& operator=(const step_buffer&) = delete;

  uint8_t* data() const { return static_cast<uint8_t*>(memory.get()->mapped()); }
  uint64_t size() const { return bytes; }

  lease memory;
  uint64_t bytes = 0;  // requested
  opened& device;
};

class steps_on;

class program {
 public:
  explicit program(opened& device) noexcept : device_(device) {}
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  bitnet_status build(const bitnet_graph* g, const weights& all,
                      const bitnet_program_options* options, uint64_t cancel_token,
                      const sdk::reporter& report);
  // Bytes of a binding's memory. Valid after build().
  uint64_t binding_bytes() const;
  const sdk::graph& graph() const noexcept { return graph_; }

  // `see` returns the memory of a buffer, `pool_of` the pool of a handle.
  template <class See, class PoolOf>
  bitnet_status bind(const bitnet_bind_request* request, steps_on& out, const See& see,
                     const PoolOf& pool_of, const sdk::reporter& report);
  std::vector<bitnet_kernel_stat> stats() const;

 private:
  friend steps_on;
  struct counter {
    uint64_t calls = 0, time_ns = 0, bytes = 0;
  };

  uint64_t rows_of(uint32_t value, uint64_t tokens, uint64_t outputs) const noexcept;
  uint64_t row_words_of(uint32_t value) const noexcept;
  uint64_t context_parts() const noexcept;  // of the longest possible context
  uint64_t parts_of_token() const noexcept;
  bool belongs(const node& n, uint32_t rows, logits asked, bool in_f16) const noexcept;
  std::vector<sdk::lifetime> lifetimes(uint64_t tokens, uint64_t outputs) const;
  bitnet_status check_passes(const sdk::reporter& report) const;
  bitnet_status check_room(const sdk::reporter& report) const;
  static uint64_t rotation_bytes(const rotation_table& t, uint64_t tokens) noexcept {
    return uint64_t{8} * t.pairs * tokens;
  }
  // Most bytes that a recording copies to the device.
  uint64_t gathered_bytes() const noexcept;
  uint32_t bucket(uint32_t tokens) const noexcept;

  opened& device_;
  bitnet_program_options limits_{};
  std::vector<uint32_t> buckets_;  // ascending; the last is max_tokens
  sdk::graph graph_;
  gpu::plan plan_;
  std::vector<std::unique_ptr<rotations>> rotations_;  // as in plan::rotations
  mutable std::mutex stats_lock_;
  std::vector<counter> counters_;  // by node
};

// A binding of the contract: activations, recordings and the place of every port.
class steps_on {
 public:
  explicit steps_on(program& of) noexcept : of_(of), device_(of.device_) {}
  ~steps_on();
  steps_on(const steps_on&) = delete;
  steps_on& operator=(const steps_on&) = delete;

  // Compiles and records steps of n_tokens with n_outputs.
  bitnet_status prepare(const bitnet_prepare_request& request, const sdk::reporter& report);
  bitnet_status run(const bitnet_step& step, const std::shared_ptr<running>& queue,
                    const sdk::reporter& report);

 private:
  friend program;
  struct recorded {
    uint32_t tokens, outputs;  // most that the recording serves
    logits asked;
    std::unique_ptr<recording> commands;
    std::vector<uint32_t> nodes;  // by command
  };

  bitnet_status place(const std::vector<bitnet_bound>& named, const sdk::reporter& report);
  bitnet_status take_tickets(const sdk::reporter& report);
  kernel_spec spec_for(const node& n, uint32_t rows) const noexcept;
  binding place_of(const operand& o, const node& n, uint64_t part) const;
  parameters params_for(const node& n, uint64_t part, uint32_t tokens) const;
  void add_commands(uint32_t at, uint32_t rows, std::vector<command>& commands,
                    std::vector<uint32_t>& nodes) const;
  bitnet_status find_recording(uint32_t n_tokens, uint32_t n_outputs, logits asked,
                               uint64_t cancel_token, recorded*& out, const sdk::reporter& report);
  // The logits that a step requests, as far as the head can provide them.
  bitnet_status asked_by(const bitnet_step& step, logits& out, const sdk::reporter& report);
  void fill_header(const bitnet_step& step, logits asked);
  bitnet_status finish_last(const sdk::reporter& report);
  void count(const recorded& r, uint32_t n_tokens, bool timed);

  program& of_;
  opened& device_;
  std::vector<binding> values_;             // of the graph; no memory where no kernel uses it
  binding facts_[BITNET_PORT_LARGEST + 1];  // by role
  kv_pool* pool_ = nullptr;
  lease arena_, header_, tickets_;
  head_scratch top_head_;
  std::vector<lease> rotations_;
  sdk::step_view step_;
  sdk::step_checker checker_;
  std::mutex running_;
  std::vector<recorded> recordings_;
  std::shared_ptr<running> last_queue_;  // of the last step
  uint64_t last_value_ = 0;
};

template <class See, class PoolOf>
bitnet_status program::bind(const bitnet_bind_request* request, steps_on& out, const See& see,
                            const PoolOf& pool_of, const sdk::reporter& report) {
  bitnet_bind_request known{};
  std::vector<bitnet_bound> named;
  std::vector<sdk::bound_memory> bound;
  if (bitnet_status s =
          sdk::check_bound(request, graph_, limits_, alignment_of(device_.capabilities()), known,
                           named, bound, see, report);
      sdk::failed(s))
    return s;
  out.pool_ = pool_of(known.kv_pool);
  if (bitnet_status s =
          sdk::check_pool(graph_, limits_, out.pool_ ? &out.pool_->storage() : nullptr, report);
      sdk::failed(s))
    return s;
  out.step_ = sdk::view_of(graph_, limits_, bound);
  return out.place(named, report);
}

}  // namespace bitnet::gpu
