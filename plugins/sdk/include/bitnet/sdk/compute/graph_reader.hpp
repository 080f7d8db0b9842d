// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// Copies and checks a graph that came over the edge. Afterwards every index is in range, every
// value has one writer that comes before its readers, every op's shapes and element types fit its
// definition in ops.h, and every port that an op reads exists. Unknown parts are rejected as
// BITNET_UNSUPPORTED.

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "bitnet/abi/program.h"
#include "bitnet/sdk/compute/graph.hpp"
#include "bitnet/sdk/compute/tensor.hpp"
#include "bitnet/sdk/guard.hpp"
#include "bitnet/sdk/received.hpp"

namespace bitnet::sdk {

// `Weights` has size(), and at(i) with `sealed` and `view`; of views format, k and m are read.
template <class Weights>
class graph_reader {
 public:
  graph_reader(const Weights& weights, const reporter& report, graph& out) noexcept
      : weights_(weights), report_(report), out_(out) {}

  bitnet_status read(const bitnet_graph* g) {
    bitnet_graph known{};
    if (bitnet_status s = receive_graph(g, known, report_); failed(s)) return s;
    if (bitnet_status s = receive_array(known.values, known.value_size, known.n_values, out_.values,
                                        "value", report_);
        failed(s))
      return s;
    if (bitnet_status s =
            receive_array(known.ops, known.op_size, known.n_ops, out_.ops, "op", report_);
        failed(s))
      return s;
    if (bitnet_status s =
            receive_array(known.ports, known.port_size, known.n_ports, out_.ports, "port", report_);
        failed(s))
      return s;
    written_.assign(known.n_values, false);
    out_.external.assign(known.n_values, false);
    for (uint32_t i = 0; i < known.n_values; ++i)
      if (bitnet_status s = check_value(i); failed(s)) return s;
    if (bitnet_status s = read_ports(); failed(s)) return s;
    std::vector<uint64_t> ends;  // of the bodies that contain the op
    for (at_ = 0; at_ < out_.ops.size(); ++at_) {
      while (!ends.empty() && at_ == ends.back()) ends.pop_back();
      const bitnet_op& op = out_.ops[at_];
      if (is_composite(op)) {
        if (bitnet_status s = check_composite(op); failed(s)) return s;
        const uint64_t end = at_ + 1 + op.body_count;
        if (!ends.empty() && end > ends.back())
          return reject("its body ends after the body that contains it");
        ends.push_back(end);
      } else if (bitnet_status s = check_primitive(op); failed(s)) {
        return s;
      }
    }
    if (bitnet_status s = check_state_parts(); failed(s)) return s;
    return check_ports();
  }

 private:
  bitnet_status reject(const char* why, bitnet_status code = BITNET_INVALID_ARGUMENT) const {
    const op_signature* known = find_op(out_.ops[at_].op);
    return report_.fail(code, "op %llu (%s): %s", static_cast<unsigned long long>(at_),
                        known ? known->name : "unknown", why);
  }

  bitnet_status check_value(uint32_t i) const {
    const bitnet_value& v = out_.values[i];
    const auto fail = [&](bitnet_status code, const char* why) {
      return report_.fail(code, "value %u (type %u, %lld x %lld): %s", i, v.dtype,
                          static_cast<long long>(v.dims[0]), static_cast<long long>(v.dims[1]),
                          why);
    };
    const bool named = v.dims[0] == BITNET_DIM_TOKENS || v.dims[0] == BITNET_DIM_OUTPUTS;
    if (element_bytes(v.dtype) == 0 || v.reserved_0 != 0 || (v.dims[0] < 0 && !named))
      return fail(BITNET_UNSUPPORTED, "this backend does not know the type or a dimension");
    if (v.dims[0] == 0 || v.dims[0] > max_extent || v.dims[1] < 1 || v.dims[1] > max_extent)
      return fail(BITNET_INVALID_ARGUMENT, "dimensions of 1 to 2^31 are expected");
    return BITNET_OK;
  }

  bitnet_status wrong_port(uint64_t i, const char* why,
                           bitnet_status code = BITNET_INVALID_ARGUMENT) const {
    return report_.fail(code, "port %llu (role %u, value %u): %s",
                        static_cast<unsigned long long>(i), out_.ports[i].role, out_.ports[i].value,
                        why);
  }

  // Input values exist before any op; outputs are checked when all ops are known.
  bitnet_status read_ports() {
    for (uint64_t i = 0; i < out_.ports.size(); ++i) {
      const auto [role, value] = out_.ports[i];
      if ((known_roles >> std::min(role, 31u) & 1) == 0)
        return wrong_port(i, "this backend does not know the role", BITNET_UNSUPPORTED);
      const bool has_value = (value_roles & role_bit(role)) != 0;
      if (has_value != (value != BITNET_NONE) || (has_value && value >= out_.values.size()))
        return wrong_port(i,
                          has_value ? "its value is not in the graph" : "its role takes no value");
      const bool once = !has_value || role == BITNET_PORT_LOGITS;
      if (once && (present_ & role_bit(role)) != 0)
        return wrong_port(i, "the graph has another port of that role");
      present_ |= role_bit(role);
      if (!has_value) continue;
      if (out_.external[value]) return wrong_port(i, "another port has that value");
      out_.external[value] = true;
      if (role == BITNET_PORT_VALUE_IN) written_[value] = true;
      if (role == BITNET_PORT_LOGITS) out_.logits = value;
    }
    return BITNET_OK;
  }

  bitnet_status check_ports() const {
    for (uint64_t i = 0; i < out_.ports.size(); ++i)
      if (out_.ports[i].value != BITNET_NONE && !written_[out_.ports[i].value])
        return wrong_port(i, "no op writes its value");
    if (out_.logits != BITNET_NONE && (out_.values[out_.logits].dtype != BITNET_DTYPE_F32 ||
                                       out_.values[out_.logits].dims[0] != BITNET_DIM_OUTPUTS))
      return report_.fail(BITNET_INVALID_ARGUMENT,
                          "value %u cannot be the logits: an f32 (outputs, n) is expected",
                          out_.logits);
    if ((present_ & role_bit(BITNET_PORT_LARGEST)) != 0 && out_.logits == BITNET_NONE)
      return report_.fail(BITNET_INVALID_ARGUMENT,
                          "a port of the largest logits needs a port of all logits; found none");
    for (uint32_t role = BITNET_PORT_TOKENS; role <= BITNET_PORT_STATES; ++role)
      if ((out_.reads & ~present_ & role_bit(role)) != 0)
        return report_.fail(BITNET_INVALID_ARGUMENT,
                            "an op reads a port of role %u; the graph has none", role);
    return BITNET_OK;
  }

  // Composites are computed through their bodies, so only their indices are checked. For the same
  // reason an unknown id is accepted.
  bitnet_status check_composite(const bitnet_op& op) const {
    if (op.body_count == 0 || op.body_count > out_.ops.size() - at_ - 1)
      return reject("its body reaches past the graph or is empty");
    if (has_attributes(op, 0, 0))
      return reject("it sets an attribute that this backend does not know", BITNET_UNSUPPORTED);
    for (int i = 0; i < 4; ++i) {
      if (!index_or_none(op.inputs[i], out_.values.size()) ||
          !index_or_none(op.outputs[i], out_.values.size()) ||
          !index_or_none(op.weights[i], weights_.size()))
        return reject("an index is out of range");
    }
    return BITNET_OK;
  }
  // True if an attribute is set that the op does not have.
  static bool has_attributes(const bitnet_op& op, uint32_t ints, uint32_t floats) noexcept {
    return std::any_of(op.ints + ints, std::end(op.ints), [](int32_t i) { return i != 0; }) ||
           std::any_of(op.floats + floats, std::end(op.floats), [](float f) { return f != 0; });
  }
  static bool index_or_none(uint32_t i, uint64_t size) noexcept {
    return i == BITNET_NONE || i < size;
  }

  bitnet_status check_primitive(const bitnet_op& op) {
    const op_signature* known = find_op(op.op);
    if (!known) return reject("this backend does not know the op", BITNET_UNSUPPORTED);
    if (op.body_count != 0) return reject("a primitive has no body");
    if (has_attributes(op, known->ints, known->floats))
      return reject("it sets an attribute that this backend does not know", BITNET_UNSUPPORTED);
    const bool optional_weight = op.op == BITNET_OP_ROPE || op.op == BITNET_OP_HADAMARD;
    for (uint32_t i = 0; i < 4; ++i) {
      if (i >= known->inputs ? op.inputs[i] != BITNET_NONE
                             : op.inputs[i] >= out_.values.size() || !written_[op.inputs[i]])
        return reject("an input is out of range, not written yet, or one too many");
      if (i >= known->outputs ? op.outputs[i] != BITNET_NONE
                              : op.outputs[i] >= out_.values.size() || written_[op.outputs[i]])
        return reject("an output is out of range, written twice, or one too many");
      const bool wanted = i < known->weights;
      const bool absent = op.weights[i] == BITNET_NONE;
      if (wanted ? (absent ? !optional_weight : op.weights[i] >= weights_.size()) : !absent)
        return reject("a weight is out of range, missing, or one too many");
    }
    if (op.weights[0] != BITNET_NONE && !weights_.at(op.weights[0]).sealed)
      return reject("its weight is not sealed");
    // Writing the same value twice within one op would escape the check above.
    if (known->outputs == 2 && op.outputs[0] == op.outputs[1])
      return reject("its two outputs are the same value");
    if (op.op == BITNET_OP_ROPE && op.ints[3] != BITNET_ROPE_NEOX &&
        op.ints[3] != BITNET_ROPE_INTERLEAVED)
      return reject("this backend does not know its pairing", BITNET_UNSUPPORTED);
    if (op.op == BITNET_OP_HADAMARD && op.ints[1] != BITNET_HADAMARD_FACTORS_FIRST &&
        op.ints[1] != BITNET_HADAMARD_FACTORS_LAST)
      return reject("this backend does not know the place of its factors", BITNET_UNSUPPORTED);
    if (op.op == BITNET_OP_DELTA_RULE && op.ints[5] != BITNET_DELTA_BLOCKS &&
        op.ints[5] != BITNET_DELTA_TURNS)
      return reject("this backend does not know its order of heads", BITNET_UNSUPPORTED);
    if (op.op == BITNET_OP_LINEAR_DENSE &&
        weights_.at(op.weights[0]).view.format == BITNET_FORMAT_TERNARY2)
      return reject("its weight is ternary and its input is f32; a dense weight is expected",
                    BITNET_UNSUPPORTED);
    if (const char* why = misfit(op)) return reject(why);
    note_reads(op.op);
    for (uint32_t i = 0; i < known->outputs; ++i) written_[op.outputs[i]] = true;
    return BITNET_OK;
  }

  void note_reads(uint32_t op) noexcept {
    const auto reads = [&](std::initializer_list<uint32_t> roles) {
      for (const uint32_t role : roles) out_.reads |= role_bit(role);
    };
    switch (op) {
      case BITNET_OP_EMBED_GATHER:
        return reads({BITNET_PORT_TOKENS});
      case BITNET_OP_ROPE:
        return reads({BITNET_PORT_POSITIONS});
      case BITNET_OP_KV_WRITE:
        return reads({BITNET_PORT_SLOTS});
      case BITNET_OP_ATTN_PAGED:
        return reads({BITNET_PORT_POSITIONS, BITNET_PORT_SEQUENCES, BITNET_PORT_BLOCK_TABLES});
      case BITNET_OP_GATHER_ROWS:
        return reads({BITNET_PORT_OUTPUT_ROWS});
      case BITNET_OP_SHORT_CONV:
      case BITNET_OP_DELTA_RULE:
        return reads({BITNET_PORT_POSITIONS, BITNET_PORT_SEQUENCES, BITNET_PORT_STATES});
      default:
        return;
    }
  }

  bool shaped(uint32_t value, uint32_t dtype, int64_t rows, uint64_t width) const noexcept {
    const bitnet_value& v = out_.values[value];
    return v.dtype == dtype && v.dims[0] == rows && static_cast<uint64_t>(v.dims[1]) == width;
  }
  bool f32(uint32_t value, int64_t rows, uint64_t width) const noexcept {
    return shaped(value, BITNET_DTYPE_F32, rows, width);
  }

  static constexpr const char* shapes =
      "shapes or element types do not fit its definition in ops.h";
  static const char* fits(bool fit) noexcept { return fit ? nullptr : shapes; }

  // Why the op does not fit its definition, or nullptr.
  const char* misfit(const bitnet_op& op) {
    const weight* w = op.weights[0] == BITNET_NONE ? nullptr : &weights_.at(op.weights[0]).view;
    const uint32_t* in = op.inputs;
    const uint32_t* out = op.outputs;
    const bitnet_value none{};
    const bitnet_value& x = in[0] == BITNET_NONE ? none : out_.values[in[0]];
    const int64_t rows = x.dims[0];
    const auto k = static_cast<uint64_t>(x.dims[1]);
    switch (op.op) {
      case BITNET_OP_EMBED_GATHER:
        out_.vocabulary = std::min(out_.vocabulary, w->m);
        return fits(f32(out[0], BITNET_DIM_TOKENS, w->k));
      case BITNET_OP_RMS_NORM:
        return norm_misfit(op, *w, 1, rows, k);
      case BITNET_OP_RMS_NORM_HEADS:
        return norm_misfit(op, *w, op.ints[0], rows, k);
      case BITNET_OP_ACT_QUANT_I8:
        return quantiser_misfit(op, k, rows, k);
      case BITNET_OP_ACT_QUANT_I8_GROUPED: {
        const auto group = static_cast<uint64_t>(op.ints[0]);
        if (!is_activation_group(group) || k % group != 0)
          return "groups of 32, 64 or 128 elements that fill a row are expected";
        return quantiser_misfit(op, group, rows, k);
      }
      case BITNET_OP_LINEAR_TERNARY:
        return fits(w->format == BITNET_FORMAT_TERNARY2 && w->k == k &&
                    shaped(in[0], BITNET_DTYPE_I8, rows, k) && f32(in[1], rows, 1) &&
                    f32(out[0], rows, w->m));
      case BITNET_OP_LINEAR_TERNARY_GROUPED:
        return grouped_misfit(op, *w, rows, k);
      case BITNET_OP_LINEAR_DENSE:
        return fits(w->k == k && f32(in[0], rows, k) && f32(out[0], rows, w->m));
      case BITNET_OP_HADAMARD:
        return hadamard_misfit(op, w, rows, k);
      case BITNET_OP_ROPE:
        return rope_misfit(op, w, k);
      case BITNET_OP_KV_WRITE:
        if (!f32(in[0], BITNET_DIM_TOKENS, k) || !f32(in[1], BITNET_DIM_TOKENS, k)) return shapes;
        out_.writes_kv = true;
        return kv_misfit(op.ints[0], k);
      case BITNET_OP_ATTN_PAGED:
        return attention_misfit(op, k);
      case BITNET_OP_COLUMNS:
        return columns_misfit(op, rows, k);
      case BITNET_OP_SHORT_CONV:
        return conv_misfit(op, *w, k);
      case BITNET_OP_DELTA_GATES:
        return fits(w->format == BITNET_FORMAT_F32 && w->m == 2 && w->k == k &&
                    f32(in[0], BITNET_DIM_TOKENS, k) && f32(in[1], BITNET_DIM_TOKENS, k) &&
                    f32(out[0], BITNET_DIM_TOKENS, 2 * k));
      case BITNET_OP_DELTA_RULE:
        return delta_misfit(op, k);
      default:
        return elements_misfit(op, rows, k);
    }
  }

  // Checks ops without weights that look at one element of each input at a time.
  const char* elements_misfit(const bitnet_op& op, int64_t rows, uint64_t k) const noexcept {
    const uint32_t* in = op.inputs;
    const uint32_t* out = op.outputs;
    switch (op.op) {
      case BITNET_OP_ADD:
      case BITNET_OP_MUL:
        return fits(f32(in[0], rows, k) && f32(in[1], rows, k) && f32(out[0], rows, k));
      case BITNET_OP_RELU2:
      case BITNET_OP_SILU:
      case BITNET_OP_GELU:
      case BITNET_OP_SIGMOID:
        return fits(f32(in[0], rows, k) && f32(out[0], rows, k));
      case BITNET_OP_SCALE:
        if (!std::isfinite(op.floats[0])) return "its factor must be finite";
        return fits(f32(in[0], rows, k) && f32(out[0], rows, k));
      case BITNET_OP_GATHER_ROWS:
        return fits(f32(in[0], BITNET_DIM_TOKENS, k) && f32(out[0], BITNET_DIM_OUTPUTS, k));
      default:
        return "this backend does not know the op";
    }
  }

  const char* norm_misfit(const bitnet_op& op, const weight& w, int32_t heads, int64_t rows,
                          uint64_t k) const noexcept {
    if (heads < 1 || k % static_cast<uint64_t>(heads) != 0)
      return "its number of heads does not divide the width";
    return fits(w.format == BITNET_FORMAT_F32 && w.m == 1 &&
                w.k == k / static_cast<uint64_t>(heads) && f32(op.inputs[0], rows, k) &&
                f32(op.outputs[0], rows, k));
  }

  // Checks quantisers with one scale for each `group` elements.
  const char* quantiser_misfit(const bitnet_op& op, uint64_t group, int64_t rows,
                               uint64_t k) const noexcept {
    return fits(f32(op.inputs[0], rows, k) && shaped(op.outputs[0], BITNET_DTYPE_I8, rows, k) &&
                f32(op.outputs[1], rows, k / group));
  }

  const char* hadamard_misfit(const bitnet_op& op, const weight* w, int64_t rows,
                              uint64_t k) const noexcept {
    const auto block = static_cast<uint32_t>(op.ints[0]);
    if (block < 2 || block > 65536 || !std::has_single_bit(block) || k % block != 0)
      return "blocks of a power of two up to 65536 that fill a row are expected";
    return fits((!w || (w->format == BITNET_FORMAT_F32 && w->m == 1 && w->k == k)) &&
                f32(op.inputs[0], rows, k) && f32(op.outputs[0], rows, k));
  }

  const char* conv_misfit(const bitnet_op& op, const weight& w, uint64_t k) {
    if (w.k < 2 || w.k > 32) return "2 to 32 factors for each column are expected";
    if (w.format != BITNET_FORMAT_F32 || w.m != k || !f32(op.inputs[0], BITNET_DIM_TOKENS, k) ||
        !f32(op.outputs[0], BITNET_DIM_TOKENS, k))
      return shapes;
    return state_misfit(op.ints[0], (w.k - 1) * k);
  }

  static bool is_activation_group(uint64_t n) noexcept { return n == 32 || n == 64 || n == 128; }

  const char* grouped_misfit(const bitnet_op& op, const weight& w, int64_t rows,
                             uint64_t k) const noexcept {
    const auto groups = static_cast<uint64_t>(out_.values[op.inputs[1]].dims[1]);
    const uint64_t own = w.scale_group == 0 ? k : w.scale_group;
    if (k % groups != 0 || !is_activation_group(k / groups))
      return "scales of groups of 32, 64 or 128 activations are expected";
    if (own != k && (own % 32 != 0 || own > 8192))
      return "groups of weights are multiples of 32 up to 8192, or a row long";
    if (own % (k / groups) != 0 && k / groups % own != 0)
      return "groups of weights and of activations must divide one another";
    return w.format == BITNET_FORMAT_TERNARY2 && w.k == k &&
                   shaped(op.inputs[0], BITNET_DTYPE_I8, rows, k) &&
                   f32(op.inputs[1], rows, groups) && f32(op.outputs[0], rows, w.m)
               ? nullptr
               : shapes;
  }

  const char* rope_misfit(const bitnet_op& op, const weight* w, uint64_t k) const noexcept {
    const int64_t heads = op.ints[0], head_dim = op.ints[1], turned = op.ints[2];
    if (heads < 1 || head_dim < 1 || static_cast<uint64_t>(heads * head_dim) != k)
      return "heads times head size is not the width";
    if (turned < 2 || turned % 2 != 0 || turned > head_dim)
      return "the rotated dimensions must be even and within a head";
    if (!(op.floats[0] > 0) || !std::isfinite(op.floats[0]) || !std::isfinite(op.floats[1]))
      return "base and factor must be finite, the base positive";
    if (w &&
        (w->format != BITNET_FORMAT_F32 || w->m != 1 || w->k != static_cast<uint64_t>(turned / 2)))
      return "one frequency factor per pair is expected";
    return f32(op.inputs[0], BITNET_DIM_TOKENS, k) && f32(op.outputs[0], BITNET_DIM_TOKENS, k)
               ? nullptr
               : shapes;
  }

  const char* attention_misfit(const bitnet_op& op, uint64_t k) noexcept {
    const int64_t heads = op.ints[1], kv_heads = op.ints[2], head_dim = op.ints[3];
    if (heads < 1 || kv_heads < 1 || head_dim < 1 || heads % kv_heads != 0 ||
        static_cast<uint64_t>(heads * head_dim) != k)
      return "heads times head size is not the width, or KV heads do not divide heads";
    if (!f32(op.inputs[0], BITNET_DIM_TOKENS, k) || !f32(op.outputs[0], BITNET_DIM_TOKENS, k))
      return shapes;
    if (out_.n_kv_heads != 0 && out_.n_kv_heads != kv_heads) return "layers differ in KV heads";
    if (op.ints[4] < 0) return "its window is below 0";
    out_.attends = true;
    out_.windowed_layers = out_.windowed_layers || op.ints[4] != 0;
    out_.n_kv_heads = static_cast<uint32_t>(kv_heads);
    out_.head_group = std::max(out_.head_group, static_cast<uint32_t>(heads / kv_heads));
    return kv_misfit(op.ints[0], static_cast<uint64_t>(kv_heads * head_dim));
  }

  const char* columns_misfit(const bitnet_op& op, int64_t rows, uint64_t k) const noexcept {
    const int64_t length = op.ints[0], first = op.ints[1];
    const int64_t inner = op.ints[2], inner_stride = op.ints[3];
    const int64_t outer = op.ints[4], outer_stride = op.ints[5];
    if (length < 1 || inner < 1 || outer < 1 || first < 0 || inner_stride < 0 || outer_stride < 0)
      return "its counts must be above 0, the first element and the strides 0 or more";
    // Each product is below 2^62, and once both are known to be within a row the sum is small.
    const auto width = static_cast<int64_t>(k);
    if ((inner - 1) * inner_stride > width || (outer - 1) * outer_stride > width ||
        first + (inner - 1) * inner_stride + (outer - 1) * outer_stride + length > width)
      return "its parts reach past the row";
    if (inner * outer > max_extent || inner * outer * length > max_extent)
      return "its parts have more than 2^31 elements";
    return f32(op.inputs[0], rows, k) &&
                   f32(op.outputs[0], rows, static_cast<uint64_t>(inner * outer * length))
               ? nullptr
               : shapes;
  }

  const char* delta_misfit(const bitnet_op& op, uint64_t k) {
    const int64_t n_k = op.ints[1], n_v = op.ints[2], d_k = op.ints[3], d_v = op.ints[4];
    for (const int64_t n : {n_k, n_v, d_k, d_v})
      if (n < 1 || n > 1 << 16) return "1 to 65536 heads of 1 to 65536 elements are expected";
    if (n_v % n_k != 0) return "the number of key heads does not divide the number of value heads";
    if (!std::isfinite(op.floats[0]) || !(op.floats[1] >= 0) || !std::isfinite(op.floats[1]))
      return "its scale and epsilon must be finite, epsilon not below 0";
    const auto width = static_cast<uint64_t>(2 * n_k * d_k + n_v * d_v);
    if (width != k || !f32(op.inputs[0], BITNET_DIM_TOKENS, k) ||
        !f32(op.inputs[1], BITNET_DIM_TOKENS, static_cast<uint64_t>(2 * n_v)) ||
        !f32(op.outputs[0], BITNET_DIM_TOKENS, static_cast<uint64_t>(n_v * d_v)))
      return shapes;
    return state_misfit(op.ints[0], static_cast<uint64_t>(n_v * d_k) * static_cast<uint64_t>(d_v));
  }

  // Records the part of the state that an op works on.
  const char* state_misfit(int32_t first, uint64_t elements) {
    if (first < 0 || elements > UINT32_MAX - static_cast<uint64_t>(first))
      return "its part of the state is out of range";
    const uint64_t end = static_cast<uint64_t>(first) + elements;
    state_parts_.push_back({static_cast<uint64_t>(first), end});
    out_.state_elements = std::max(out_.state_elements, end);
    return nullptr;
  }

  bitnet_status check_state_parts() {
    std::sort(state_parts_.begin(), state_parts_.end(),
              [](const state_part& a, const state_part& b) { return a.first < b.first; });
    for (uint64_t i = 1; i < state_parts_.size(); ++i)
      if (state_parts_[i].first < state_parts_[i - 1].end)
        return report_.fail(BITNET_INVALID_ARGUMENT, "two ops have element %llu of the state",
                            static_cast<unsigned long long>(state_parts_[i].first));
    return BITNET_OK;
  }

  const char* kv_misfit(int32_t layer, uint64_t width) noexcept {
    if (layer < 0 || layer >= 1 << 16) return "a layer of 0 to 65535 is expected";
    if (out_.kv_width != 0 && out_.kv_width != width) return "layers differ in KV width";
    out_.kv_width = width;
    out_.kv_layers = std::max(out_.kv_layers, static_cast<uint32_t>(layer) + 1);
    return nullptr;
  }

  const Weights& weights_;
  const reporter& report_;
  graph& out_;
  std::vector<bool> written_;
  struct state_part {
    uint64_t first, end;  // elements
  };
  std::vector<state_part> state_parts_;
  uint32_t present_ = 0;  // role_bit() of each port
  uint64_t at_ = 0;
};

}  // namespace bitnet::sdk
