#pragma once
// A compiled program, memory for its ports, and the queue that runs its steps.
//
// Owner    Device, weights and pool outlive all objects here; a binding is destroyed before its
//          program.
// Threads  as the contract says of the slots; nothing is locked here.

#include <cstdint>
#include <span>
#include <vector>

#include "compute/device.hpp"

namespace bitnet::compute {

class program {
 public:
  program() : program_(nullptr, nullptr) {}  // none
  static attempt<program> build(const device& d, const graph& g,
                                std::span<bitnet_weights* const> weights,
                                const bitnet_program_options& options, uint64_t cancel_token = 0);

  [[nodiscard]] bitnet_program* get() const { return program_.get(); }
  // Counters of its kernels so far.
  [[nodiscard]] attempt<std::vector<bitnet_kernel_stat>> stats() const;

 private:
  program(const bitnet_backend_v0& table, handle<bitnet_program> made)
      : table_(&table), program_(std::move(made)) {}

  const bitnet_backend_v0* table_ = nullptr;
  handle<bitnet_program> program_;
};

// Allocates a buffer for every port, as large as the program's bounds need.
class binding {
 public:
  binding() : binding_(nullptr, nullptr) {}  // none
  // `pool` may be nullptr if no op reads or writes keys.
  static attempt<binding> make(const device& d, const program& p, const graph& g,
                               const bitnet_program_options& bounds, bitnet_kv_pool* pool);

  [[nodiscard]] bitnet_binding* get() const { return binding_.get(); }
  // Address at which the host writes or reads port `i` of the graph.
  template <class T>
  [[nodiscard]] T* port(std::size_t i) const {
    return static_cast<T*>(memory_[i].address);
  }
  // Address of the first port of that role; nullptr if there is none.
  template <class T>
  [[nodiscard]] T* of(uint32_t role) const {
    for (const port_memory& m : memory_)
      if (m.role == role) return static_cast<T*>(m.address);
    return nullptr;
  }
  // Prepares for steps of at most these numbers.
  attempt<void> prepare(uint32_t n_tokens, uint32_t n_outputs, uint32_t n_sequences,
                        uint64_t cancel_token = 0);

 private:
  struct port_memory {
    uint32_t role;
    void* address;
    uint64_t bytes;
  };
  explicit binding(const bitnet_backend_v0& table)
      : table_(&table), binding_(nullptr, table.binding_destroy) {}
  attempt<void> add_buffer(const device& d, uint32_t role, uint64_t bytes);

  const bitnet_backend_v0* table_ = nullptr;
  std::vector<handle<bitnet_buffer>> buffers_;  // one per port
  std::vector<port_memory> memory_;             // one per port
  handle<bitnet_binding> binding_;              // destroyed first
};

// Bytes of a port at the bounds of a program.
[[nodiscard]] uint64_t port_bytes(const graph& g, const bitnet_port& p,
                                  const bitnet_program_options& bounds);

class queue {
 public:
  queue() : queue_(nullptr, nullptr) {}  // none
  static attempt<queue> make(const device& d, int32_t priority = 0);

  // Starts a step and fills in its signal.
  attempt<void> submit(bitnet_step step);
  // Copies KV blocks, or states, from[i] to to[i].
  attempt<void> copy(bitnet_kv_pool* pool, std::span<const uint32_t> from,
                     std::span<const uint32_t> to);
  // Copies blocks to `memory` in the canonical layout; keep it until they have arrived.
  attempt<void> write_out(bitnet_kv_pool* pool, std::span<const uint32_t> blocks,
                          std::span<std::byte> memory);
  attempt<void> read_in(bitnet_kv_pool* pool, std::span<const uint32_t> blocks,
                        std::span<const std::byte> memory);
  // Waits until all submitted work is done, or returns its error.
  attempt<void> wait(uint64_t timeout_ns);

 private:
  queue(const bitnet_backend_v0& table, handle<bitnet_queue> made)
      : table_(&table), queue_(std::move(made)) {}

  const bitnet_backend_v0* table_ = nullptr;
  handle<bitnet_queue> queue_;
  uint64_t timeline_ = 0;  // the value that the last submitted call signals
};

}  // namespace bitnet::compute
