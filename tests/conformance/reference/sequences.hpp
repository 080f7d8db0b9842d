#pragma once
// Obvious models of what steps of many sequences do to a pool: keys and values with attention over
// them, and states. Inputs come in and results leave through ports of the graph.

#include <array>
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

// A port of values: floats of a token, and the op whose result leaves there.
struct value_port {
  uint64_t width = 0;
  const char* result = nullptr;  // nullptr: a value that comes in
};
using step_inputs = std::array<std::span<const float>, 3>;
// The ops that write blocks, and an element of a state.
struct pool_owners {
  const char* blocks;
  const char* (*of_element)(uint64_t element);
};

// The two graphs have the same members: what comes in by their first three ports and leaves by the
// next two, and which op has an element of the pool. Logits: rows of the last port.

// KV_WRITE and ATTN_PAGED of two layers, the second of which keeps the first's values as keys.
// Ports: queries, keys, values; then what attention of each layer gives.
struct keys_graph {
  static constexpr uint32_t heads = 4, kv_heads = 2, head_dim = 32, layers = 2;
  static constexpr uint32_t width = heads * head_dim, kv_width = kv_heads * head_dim;

  static constexpr value_port ports[] = {{width},
                                         {kv_width},
                                         {kv_width},
                                         {width, "ATTN_PAGED: element"},
                                         {width, "ATTN_PAGED, second layer: element"}};
  static constexpr pool_owners owners = {"KV_WRITE", nullptr};  // it has no states

  explicit keys_graph(int32_t layer_window);  // of the second layer; 0: none
  // Fills the ports that come in.
  void inputs(uint32_t tokens, std::mt19937& random, std::span<const std::span<float>> in) const;
  // What a step gives, of both layers; `pool` is then as after it.
  std::vector<expected_rows> step(const planned_step& step, const step_inputs& in,
                                  pool_contents& pool) const;

  model graph;
  uint32_t layer_window;
};

// SHORT_CONV and DELTA_RULE. Ports: rows of the first, rows and gates of the second; then what each
// gives. Between their parts of a state lie elements that neither has.
//
// Numbers are small and whole, queries and keys have one element that is not 0, decays are 1 or
// 1/2: every sum is exact in f32, in any order.
struct states_graph {
  static constexpr uint32_t taps = 4, n_v = 2, d_k = 16, d_v = 24;
  static constexpr uint32_t conv_width = 40, rule_width = 2 * d_k + n_v * d_v;
  static constexpr uint32_t conv_at = 7, rule_at = conv_at + (taps - 1) * conv_width + 11;
  static constexpr uint32_t elements = rule_at + n_v * d_k * d_v + 3;
  static constexpr value_port ports[] = {{conv_width},
                                         {rule_width},
                                         {uint64_t{2} * n_v},
                                         {conv_width, "SHORT_CONV: element"},
                                         {uint64_t{n_v} * d_v, "DELTA_RULE: element"}};

  static const char* owner(uint64_t element) {
    if (element >= conv_at && element < conv_at + (taps - 1) * conv_width) return "SHORT_CONV";
    if (element >= rule_at && element < rule_at + n_v * d_k * d_v) return "DELTA_RULE";
    return "no op has it";
  }
  static constexpr pool_owners owners = {"no op writes blocks", owner};

  states_graph();
  void inputs(uint32_t tokens, std::mt19937& random, std::span<const std::span<float>> in) const;
  std::vector<expected_rows> step(const planned_step& step, const step_inputs& in,
                                  pool_contents& pool) const;

  model graph;
  std::vector<float> factors;  // (conv_width, taps)
};

}  // namespace bitnet::conformance
