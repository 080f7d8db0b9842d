#pragma once
// A compiled graph: recorded once for each size of step that is met, then submitted again and
// again.
//
// Buckets  a recording is made for a number of tokens and of outputs, rounded up to the program's
//          buckets; kernels read the real counts from the step header.
// Threads  steps of one program run one at a time: the next waits for the last.

#include <mutex>
#include <vector>

#include "bitnet/sdk/interpreter/arena.hpp"
#include "bitnet/sdk/interpreter/graph.hpp"
#include "bitnet/sdk/interpreter/step.hpp"
#include "kv_pool.hpp"
#include "plan.hpp"

namespace bitnet::gpu {

// A step buffer as buffer_create made it. Running steps may use it until it is destroyed.
struct step_buffer {
  explicit step_buffer(opened& from) noexcept : device(from) {}
  ~step_buffer() { device.settle(); }
  step_buffer(const step_buffer&) = delete;
  step_buffer& operator=(const step_buffer&) = delete;

  void* data() { return memory.get()->mapped(); }

  lease memory;
  opened& device;
};

class program {
 public:
  explicit program(opened& device) noexcept : device_(device) {}
  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  bitnet_status build(const bitnet_graph* g, const weight_set& weights,
                      const bitnet_program_options* options, const sdk::reporter& report);
  bitnet_status estimate(uint32_t n_tokens, uint64_t& bytes, const sdk::reporter& report) const;
  // Compiles the kernels of steps of n_tokens; they are recorded when their pool is known.
  bitnet_status prepare(uint32_t n_tokens, const sdk::reporter& report);
  bitnet_status bind(const bitnet_step_buffers& buffers, const sdk::reporter& report);
  bitnet_status run(const bitnet_step& step, kv_pool* pool, const std::shared_ptr<running>& queue,
                    const sdk::reporter& report);
  std::vector<bitnet_kernel_stat> stats() const;

 private:
  struct recorded {
    uint32_t tokens, outputs;  // for as many at most
    uint64_t pool;
    std::unique_ptr<recording> commands;
    std::vector<uint32_t> nodes;  // of each command
  };
  struct counter {
    uint64_t calls = 0, time_ns = 0, bytes = 0;
  };

  uint64_t rows_of(uint32_t value, uint64_t tokens, uint64_t outputs) const noexcept;
  std::vector<sdk::lifetime> lifetimes(uint64_t tokens, uint64_t outputs) const;
  bitnet_status check_passes(const sdk::reporter& report) const;
  bitnet_status allocate(const sdk::reporter& report);
  uint32_t bucket(uint32_t tokens) const noexcept;
  kernel_spec spec_for(const node& n, uint32_t rows, const kv_pool* pool) const noexcept;
  binding place_of(const operand& o, const node& n, uint64_t part, const kv_pool* pool) const;
  parameters params_for(const node& n, uint64_t part, const kv_pool* pool) const;
  void add_commands(uint32_t at, uint32_t rows, const kv_pool* pool, std::vector<command>& commands,
                    std::vector<uint32_t>& nodes) const;
  bitnet_status find_recording(const bitnet_step& step, kv_pool* pool, recorded*& out,
                               const sdk::reporter& report);
  void fill_header(const bitnet_step& step);
  bitnet_status finish_last(const sdk::reporter& report);
  void count(const recorded& r, uint32_t n_tokens, bool timed);

  opened& device_;
  bitnet_program_options limits_{};
  std::vector<uint32_t> buckets_;  // ascending; the last is max_tokens
  sdk::graph graph_;
  gpu::plan plan_;
  std::vector<binding> values_;  // of the graph; what no kernel touches has no memory
  lease arena_, header_;
  std::vector<lease> turns_;
  bool bound_ = false;
  binding tokens_, positions_, sequences_, slots_, block_tables_, output_rows_;
  sdk::step_view step_;
  sdk::step_checker checker_;
  std::mutex running_;
  std::vector<recorded> recordings_;
  std::shared_ptr<running> last_queue_;  // that the last step went to
  uint64_t last_value_ = 0;
  mutable std::mutex stats_lock_;
  std::vector<counter> counters_;  // of each node
};

}  // namespace bitnet::gpu
