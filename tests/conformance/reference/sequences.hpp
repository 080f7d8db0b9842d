#pragma once
// Obvious models of what steps of many sequences do to a pool: keys and values with attention over
// them, and states. Inputs come in and results leave through ports of the graph.

#include <random>
#include <span>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "model/traffic.hpp"
#include "reference/kv_store.hpp"

namespace bitnet::conformance {

// What a pool holds, as export gives it.
struct pool_contents {
  kv_layout layout{};
  std::vector<std::vector<uint8_t>> blocks;
  std::vector<std::vector<float>> states;

  // Valid numbers of the pool's types everywhere.
  void fill(std::mt19937& random);
  void move(const planned_step& step);
  [[nodiscard]] std::vector<uint8_t> bytes() const;  // all blocks, then all states
};

// Numbers that leave by a port, and what they may be off by.
struct expected_rows {
  std::vector<double> expected, allowed;
  // The first number that is off, in words; "" if none is.
  [[nodiscard]] std::string wrong(const char* what, std::span<const float> found) const;
  // Those of some rows.
  [[nodiscard]] expected_rows of(std::span<const uint32_t> rows, uint64_t width) const;
};

// KV_WRITE and ATTN_PAGED of two layers, the second of which keeps the first's values as keys.
// Ports: queries, keys, values; then what attention of each layer gives. Logits: rows of the
// second's.
struct keys_graph {
  static constexpr uint32_t heads = 4, kv_heads = 2, head_dim = 32, layers = 2;
  static constexpr uint32_t width = heads * head_dim, kv_width = kv_heads * head_dim;

  explicit keys_graph(int32_t layer_window);  // of the second layer; 0: none
  // What a step gives, of both layers; `pool` is then as after it.
  std::vector<expected_rows> step(const planned_step& step, std::span<const float> queries,
                                  std::span<const float> keys, std::span<const float> values,
                                  pool_contents& pool) const;
  [[nodiscard]] static kv_layout layout(uint32_t dtype_k, uint32_t dtype_v, uint32_t block_tokens);

  model graph;
  uint32_t layer_window;
};

// SHORT_CONV and DELTA_RULE. Ports: rows of the first, rows and gates of the second; then what each
// gives. Logits: rows of the second's. Between their parts of a state lie elements that neither
// has.
//
// Numbers are small and whole, queries and keys have one element that is not 0, decays are 1 or
// 1/2: every sum is exact in f32, in any order.
struct states_graph {
  static constexpr uint32_t taps = 4, n_v = 2, d_k = 16, d_v = 24;
  static constexpr uint32_t conv_width = 40, rule_width = 2 * d_k + n_v * d_v;
  static constexpr uint32_t conv_at = 7, rule_at = conv_at + (taps - 1) * conv_width + 11;
  static constexpr uint32_t elements = rule_at + n_v * d_k * d_v + 3;

  states_graph();
  // The op that has this element of a state.
  static const char* owner(uint64_t element) {
    if (element >= conv_at && element < conv_at + (taps - 1) * conv_width) return "SHORT_CONV";
    if (element >= rule_at && element < rule_at + n_v * d_k * d_v) return "DELTA_RULE";
    return "no op has it";
  }
  void inputs(uint32_t tokens, std::mt19937& random, std::span<float> conv, std::span<float> rule,
              std::span<float> gates) const;
  std::vector<expected_rows> step(const planned_step& step, std::span<const float> conv,
                                  std::span<const float> rule, std::span<const float> gates,
                                  pool_contents& pool) const;

  model graph;
  std::vector<float> factors;  // (conv_width, taps)
};

}  // namespace bitnet::conformance
