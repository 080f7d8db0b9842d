#pragma once
// The requests of the contract with what the kit asks for, and the calls that take them.

#include <span>
#include <vector>

#include "bitnet/abi/backend.h"
#include "model/calls.hpp"
#include "model/model.hpp"

namespace bitnet::conformance {

inline bitnet_status open_device(const bitnet_backend_v0& t, uint32_t index, bitnet_device** out,
                                 bitnet_error* e) {
  bitnet_device_request r{};
  r.struct_size = sizeof r;
  r.index = index;
  return t.device_open(t.self, &r, out, e);
}

inline bitnet_status create_buffer(const bitnet_backend_v0& t, bitnet_device* d, uint64_t bytes,
                                   bitnet_buffer** out, bitnet_error* e) {
  bitnet_buffer_request r{};
  r.struct_size = sizeof r;
  r.usage = BITNET_BUFFER_HOST_READS | BITNET_BUFFER_HOST_WRITES;
  r.bytes = bytes;
  return t.buffer_create(d, &r, out, e);
}

inline bitnet_status prepare(const bitnet_backend_v0& t, bitnet_binding* b, uint32_t n_tokens,
                             uint32_t n_outputs, bitnet_error* e, uint64_t cancel_token = 0,
                             uint32_t n_sequences = 0) {
  bitnet_prepare_request r{};
  r.struct_size = sizeof r;
  r.n_tokens = n_tokens;
  r.n_outputs = n_outputs;
  r.cancel_token = cancel_token;
  r.n_sequences = n_sequences;
  return t.binding_prepare(b, &r, e);
}

inline bitnet_status create_weights(const bitnet_backend_v0& t, bitnet_device* d,
                                    std::span<const bitnet_tensor_desc> descs, bitnet_weights** out,
                                    bitnet_error* e) {
  bitnet_weights_request r{};
  r.struct_size = sizeof r;
  r.desc_size = sizeof(bitnet_tensor_desc);
  r.n = static_cast<uint32_t>(descs.size());
  r.descs = descs.data();
  return t.weights_create(d, &r, out, e);
}

inline bitnet_status create_queue(const bitnet_backend_v0& t, bitnet_device* d, bitnet_queue** out,
                                  bitnet_error* e) {
  bitnet_queue_request r{};
  r.struct_size = sizeof r;
  return t.queue_create(d, &r, out, e);
}

inline bitnet_build_request build_request(const bitnet_graph& graph,
                                          std::span<bitnet_weights* const> weights,
                                          const bitnet_program_options& options) {
  bitnet_build_request r{};
  r.struct_size = sizeof r;
  r.n_weights = static_cast<uint32_t>(weights.size());
  r.graph = &graph;
  r.weights = weights.data();
  r.options = &options;
  return r;
}

inline bitnet_query_request query_request(const bitnet_graph& graph,
                                          std::span<const bitnet_tensor_desc> descs,
                                          const bitnet_program_options& options,
                                          const bitnet_kv_config* kv = nullptr) {
  bitnet_query_request r{};
  r.struct_size = sizeof r;
  r.desc_size = sizeof(bitnet_tensor_desc);
  r.graph = &graph;
  r.descs = descs.data();
  r.n_descs = static_cast<uint32_t>(descs.size());
  r.options = &options;
  r.kv = kv;
  return r;
}

inline bitnet_bind_request bind_request(std::span<const bitnet_bound> bound, bitnet_kv_pool* pool) {
  bitnet_bind_request r{};
  r.struct_size = sizeof r;
  r.bound_size = sizeof(bitnet_bound);
  r.n_bound = static_cast<uint32_t>(bound.size());
  r.bound = bound.data();
  r.kv_pool = pool;
  return r;
}

// Until no work is pending, that of failed calls neither: what was still to happen has happened.
inline void settle(const bitnet_backend_v0& t) {
  constexpr uint64_t patience_ns = 60'000'000'000;
  must([&](bitnet_error* e) { return t.quiesce(t.self, patience_ns, e); });
}

// The smallest bounds under which a program runs.
inline bitnet_program_options least_options() {
  bitnet_program_options o{};
  o.struct_size = sizeof o;
  o.max_tokens = o.max_outputs = o.max_sequences = o.max_blocks = 1;
  o.block_tokens = 4;
  return o;
}

}  // namespace bitnet::conformance
