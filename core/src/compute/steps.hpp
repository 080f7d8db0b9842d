#pragma once
// A compiled graph, memory for its ports, and the queue that runs its steps.
//
// Owner    device, weights and pool outlive all of it; a binding goes before its program.
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
  // What its kernels did so far.
  [[nodiscard]] attempt<std::vector<bitnet_kernel_stat>> stats() const;

 private:
  program(const bitnet_backend_v0& table, handle<bitnet_program> made)
      : table_(&table), program_(std::move(made)) {}

  const bitnet_backend_v0* table_ = nullptr;
  handle<bitnet_program> program_;
};

// Buffers of its own for every port, as large as the bounds of the program ask for.
class binding {
 public:
  binding() : binding_(nullptr, nullptr) {}  // none
  // `pool` may be nullptr if no op reads or writes keys.
  static attempt<binding> make(const device& d, const program& p, const graph& g,
                               const bitnet_program_options& bounds, bitnet_kv_pool* pool);

  [[nodiscard]] bitnet_binding* get() const { return binding_.get(); }
  // Where the host writes or reads port `i` of the graph.
  template <class T>
  [[nodiscard]] T* port(std::size_t i) const {
    return static_cast<T*>(memory_[i].address);
  }
  // The first port of that role; nullptr if there is none.
  template <class T>
  [[nodiscard]] T* of(uint32_t role) const {
    for (const place& m : memory_)
      if (m.role == role) return static_cast<T*>(m.address);
    return nullptr;
  }
  // For steps of up to so many tokens, of up to so many sequences.
  attempt<void> prepare(uint32_t n_tokens, uint32_t n_outputs, uint32_t n_sequences,
                        uint64_t cancel_token = 0);

 private:
  struct place {
    uint32_t role;
    void* address;
    uint64_t bytes;
  };
  explicit binding(const bitnet_backend_v0& table)
      : table_(&table), binding_(nullptr, table.binding_destroy) {}
  attempt<void> add_buffer(const device& d, uint32_t role, uint64_t bytes);

  const bitnet_backend_v0* table_ = nullptr;
  std::vector<handle<bitnet_buffer>> buffers_;  // of each port
  std::vector<place> memory_;                   // the same
  handle<bitnet_binding> binding_;              // goes first
};

// Bytes of a port at the bounds of a program.
[[nodiscard]] uint64_t port_bytes(const graph& g, const bitnet_port& p,
                                  const bitnet_program_options& bounds);

class queue {
 public:
  queue() : queue_(nullptr, nullptr) {}  // none
  static attempt<queue> make(const device& d, int32_t priority = 0);

  // Starts a step, whose signal it fills in.
  attempt<void> submit(bitnet_step step);
  // Blocks, or states, from[i] to to[i].
  attempt<void> copy(bitnet_kv_pool* pool, std::span<const uint32_t> from,
                     std::span<const uint32_t> to);
  // Blocks in the canonical layout, one after the other; `memory` stays until they are there.
  attempt<void> write_out(bitnet_kv_pool* pool, std::span<const uint32_t> blocks,
                          std::span<std::byte> memory);
  attempt<void> read_in(bitnet_kv_pool* pool, std::span<const uint32_t> blocks,
                        std::span<const std::byte> memory);
  // Until all that it was given is done, and says so.
  attempt<void> wait(uint64_t timeout_ns);

 private:
  queue(const bitnet_backend_v0& table, handle<bitnet_queue> made)
      : table_(&table), queue_(std::move(made)) {}

  const bitnet_backend_v0* table_ = nullptr;
  handle<bitnet_queue> queue_;
  uint64_t timeline_ = 0;  // that the last call given to it reaches
};

}  // namespace bitnet::compute
