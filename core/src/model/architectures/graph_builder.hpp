#pragma once
// Builds the graph of a model. Ternary linears become LINEAR_TERNARY behind one ACT_QUANT_I8 per
// input (q, k and v share theirs, gate and up share theirs), or the grouped ops if the model has
// groups. Dense linears become LINEAR_DENSE on the unquantised input. The input of a rotated matrix
// goes through HADAMARD first, once for all that share it. A matrix with a norm of its input has
// its own RMS_NORM.
//
// Values are referred to by uint32_t numbers. Shapes of f32 values: rows of the step x the columns
// stated.

#include <cstdint>
#include <initializer_list>
#include <span>

#include "compute/graph/graph.hpp"
#include "model/shape/shape.hpp"
#include "model/shape/weights.hpp"

namespace bitnet::model {

// A model for a context of a given length; borrows all of it.
struct described {
  const hyperparameters& shape;
  std::span<const weight> weights;
  std::span<const layer> layers;
  // Indices into weights.
  uint32_t token_embedding, output_norm, output;
  transform embedding_transform;
  rotation everywhere;  // for layers without a window
  rotation in_windows;
};

// The output of the graph, for the rows that are asked for.
enum class ending : uint8_t {
  logits,  // by BITNET_PORT_LOGITS
  hidden   // output of the last norm, by BITNET_PORT_VALUE_OUT; there is no output head
};

class graph_builder {
 public:
  explicit graph_builder(const described& m) : m_(m) {}

  // Builds the graph by the architecture's row. A section that does not begin with the embedding
  // reads hidden states, one row per token, from BITNET_PORT_VALUE_IN; one without the head writes
  // them to BITNET_PORT_VALUE_OUT, whatever the ending.
  compute::graph build(ending what, const section& of) &&;

  [[nodiscard]] const hyperparameters& shape() const { return m_.shape; }
  [[nodiscard]] const described& about() const { return m_; }
  [[nodiscard]] const layer& layer_at(uint32_t n) const { return m_.layers[n]; }

  uint32_t activation(int64_t columns) {
    return value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, columns);
  }
  uint32_t value(uint32_t dtype, int64_t rows, int64_t columns) {
    return out_.value(dtype, rows, columns);
  }
  bitnet_op& emit(uint32_t op, std::initializer_list<uint32_t> inputs,
                  std::initializer_list<uint32_t> outputs,
                  std::initializer_list<uint32_t> weights = {}) {
    return out_.emit(op, inputs, outputs, weights);
  }

  uint32_t norm(uint32_t x, uint32_t w);
  // Normalises each head by itself; returns x if there is no such weight.
  uint32_t head_norm(uint32_t x, uint32_t w, uint32_t heads);
  uint32_t scaled(uint32_t x, float factor);
  uint32_t add(uint32_t a, uint32_t b);
  uint32_t product(uint32_t a, uint32_t b);
  // Adds an op with one input and an output of the same shape.
  uint32_t through(uint32_t op, uint32_t x);
  // The parts of COLUMNS: part a * inner + b is `length` elements from
  // first + a * outer_stride + b * inner_stride on.
  struct column_parts {
    int32_t length = 0, first = 0, inner = 1, inner_stride = 0, outer = 1, outer_stride = 0;
  };
  uint32_t columns(uint32_t x, const column_parts& parts);

  // Selects the rows of x whose logits are asked for.
  uint32_t asked_rows(uint32_t x);

  // The input of linear layers of one kind.
  struct quantised {
    uint32_t x = BITNET_NONE;  // the f32 input, for dense linears
    uint32_t q = BITNET_NONE, s = BITNET_NONE;
    uint32_t group = 0;  // elements of a row per scale; 0: all
  };
  struct readable {
    uint32_t x = BITNET_NONE;
    quantised plain, transformed;
  };
  // Prepares x for all its readers, so that they share the quantised input.
  readable read_by(uint32_t x, std::initializer_list<uint32_t> readers);
  uint32_t linear(const readable& given, uint32_t w);
  // Adds a matrix that shares its input with no other.
  uint32_t linear_of(uint32_t x, uint32_t w) { return linear(read_by(x, {w}), w); }

  // Rotates as layer n does: with or without a window.
  uint32_t rope(uint32_t x, uint32_t heads, uint32_t n);
  // keep() stores keys and values of the layer, attend() reads them. Call both once, in this order.
  void keep(uint32_t k, uint32_t v);
  uint32_t attend(uint32_t q, uint32_t n);
  // Reserves `elements` of the state; returns the offset.
  int32_t take_state(uint64_t elements);

  [[nodiscard]] bool windowed(uint32_t n) const {
    return !m_.shape.windowed.empty() && m_.shape.windowed[n];
  }
  [[nodiscard]] bool ternary(uint32_t w) const {
    return m_.weights[w].format == BITNET_FORMAT_TERNARY2;
  }
  // Whether the matrix has neither a transform nor a norm of its input.
  [[nodiscard]] bool is_plain(uint32_t w) const {
    return m_.weights[w].of_input.block == 0 && m_.weights[w].input_norm == no_weight;
  }
  [[nodiscard]] bool all_plainly_ternary(std::initializer_list<uint32_t> all) const;

  // A complete pattern of ops.h gets its composite, so that a backend may fuse it: call begin()
  // before the first op, then end(), or drop() if the pattern is not complete.
  std::size_t begin() { return out_.begin(); }
  void end(std::size_t at, uint32_t op, std::initializer_list<uint32_t> inputs,
           std::initializer_list<uint32_t> outputs) {
    out_.end(at, op, inputs, outputs);
  }
  void drop(std::size_t at) { out_.drop(at); }

 private:
  [[nodiscard]] const rotation& rotation_of(uint32_t n) const {
    return windowed(n) ? m_.in_windows : m_.everywhere;
  }
  uint32_t transformed(uint32_t x, const transform& by, int32_t place);
  [[nodiscard]] uint32_t group_for(std::span<const uint32_t> readers) const;
  quantised quantise(uint32_t x, std::span<const uint32_t> readers);

  const described m_;
  int32_t n_attending_ = 0;  // layers with keys so far
  uint64_t state_ = 0;       // elements of the state reserved so far
  compute::graph out_;
};

// ---- pieces that several architectures have, with their composites where these apply -----------

// Adds norm, queries, keys and values, norms of heads if there are such weights, and rotation.
// Stores keys and values. Returns the rotated queries.
uint32_t queries(graph_builder& to, uint32_t n, uint32_t x);
// Adds norm and gated product, and the norm of the product if there is such a weight; no down
// matrix.
uint32_t gated_product(graph_builder& to, uint32_t n, uint32_t x);

uint32_t llama_attention(graph_builder& to, uint32_t n, uint32_t x);
uint32_t llama_feed_forward(graph_builder& to, uint32_t n, uint32_t x);
uint32_t llama_layer(graph_builder& to, uint32_t n, uint32_t x);
uint32_t llama_lm_head(graph_builder& to, uint32_t x);

}  // namespace bitnet::model
