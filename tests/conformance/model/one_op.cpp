#include "model/one_op.hpp"

#include <utility>

#include "model/tiny_model.hpp"

namespace bitnet::conformance {
namespace {

constexpr int64_t width = 256, rows = 8, heads = 2, head_dim = 128;

class small_graph {
 public:
  uint32_t comes_in(uint32_t dtype, int64_t columns) {
    const uint32_t v = made.value(dtype, BITNET_DIM_TOKENS, columns);
    made.more_ports.push_back({BITNET_PORT_VALUE_IN, v});
    return v;
  }
  uint32_t f32() { return comes_in(BITNET_DTYPE_F32, width); }
  uint32_t goes_out(uint32_t dtype, int64_t columns, int64_t dim = BITNET_DIM_TOKENS) {
    const uint32_t v = made.value(dtype, dim, columns);
    made.more_ports.push_back({BITNET_PORT_VALUE_OUT, v});
    return v;
  }
  uint32_t result(int64_t columns = width) { return goes_out(BITNET_DTYPE_F32, columns); }
  void rotate(bitnet_op& op) {
    op.ints[0] = heads;
    op.ints[1] = op.ints[2] = head_dim;
    op.floats[0] = 10000;
    op.floats[1] = 1;
  }
  void attend(bitnet_op& op) {
    op.ints[1] = op.ints[2] = heads;
    op.ints[3] = head_dim;
    op.floats[0] = 0.125f;
  }

  model made;
  std::mt19937 random{1};
};

model composite(uint32_t op, uint32_t format) {
  tiny_shape shape;
  shape.embedding = 256;
  shape.head_dim = 64;
  shape.only_composite = op;
  shape.relu2 = op != BITNET_OP_FFN_SILU_GATED;
  // A ternary head is no LM_HEAD.
  if (format != BITNET_FORMAT_NONE && format != BITNET_FORMAT_TERNARY2) shape.head_format = format;
  tiny_model made(shape);
  return std::move(static_cast<model&>(made));
}

// Of matrices. Each of these four: false if the op is none of its kind.
bool add_product(small_graph& g, uint32_t op, uint32_t format) {
  model& m = g.made;
  const uint32_t dense = format == BITNET_FORMAT_NONE ? BITNET_FORMAT_F32 : format;
  switch (op) {
    case BITNET_OP_EMBED_GATHER:
      m.op(op, {}, {g.result()},
           {format == BITNET_FORMAT_TERNARY2 ? m.ternary(width, rows, 0, g.random)
                                             : m.dense(dense, width, rows, g.random)});
      return true;
    case BITNET_OP_LINEAR_TERNARY:
      m.op(op, {g.comes_in(BITNET_DTYPE_I8, width), g.comes_in(BITNET_DTYPE_F32, 1)},
           {g.result(rows)}, {m.ternary(width, rows, 0, g.random)});
      return true;
    case BITNET_OP_LINEAR_TERNARY_GROUPED:
      m.op(op, {g.comes_in(BITNET_DTYPE_I8, width), g.comes_in(BITNET_DTYPE_F32, width / 32)},
           {g.result(rows)}, {m.ternary(width, rows, 64, g.random)});
      return true;
    case BITNET_OP_LINEAR_DENSE:
      m.op(op, {g.f32()}, {g.result(rows)}, {m.dense(dense, width, rows, g.random)});
      return true;
    default:
      return false;
  }
}

// Of rows, with factors or scales.
bool add_row_op(small_graph& g, uint32_t op, uint32_t format) {
  model& m = g.made;
  const uint32_t dense = format == BITNET_FORMAT_NONE ? BITNET_FORMAT_F32 : format;
  switch (op) {
    case BITNET_OP_RMS_NORM:
      m.op(op, {g.f32()}, {g.result()}, {m.dense(dense, width, 1, g.random)}).floats[0] = 1e-5f;
      return true;
    case BITNET_OP_RMS_NORM_HEADS: {
      bitnet_op& norm = m.op(op, {g.f32()}, {g.result()}, {m.dense(dense, width / 2, 1, g.random)});
      norm.ints[0] = 2;
      norm.floats[0] = 1e-5f;
      return true;
    }
    case BITNET_OP_ACT_QUANT_I8:
      m.op(op, {g.f32()}, {g.goes_out(BITNET_DTYPE_I8, width), g.result(1)});
      return true;
    case BITNET_OP_ACT_QUANT_I8_GROUPED:
      m.op(op, {g.f32()}, {g.goes_out(BITNET_DTYPE_I8, width), g.result(width / 32)}).ints[0] = 32;
      return true;
    case BITNET_OP_HADAMARD: {
      bitnet_op& turn = m.op(op, {g.f32()}, {g.result()});
      turn.ints[0] = 16;
      return true;
    }
    default:
      return false;
  }
}

bool add_element_op(small_graph& g, uint32_t op) {
  model& m = g.made;
  switch (op) {
    case BITNET_OP_ADD:
    case BITNET_OP_MUL:
      m.op(op, {g.f32(), g.f32()}, {g.result()});
      return true;
    case BITNET_OP_SCALE:
      m.op(op, {g.f32()}, {g.result()}).floats[0] = 0.75f;
      return true;
    case BITNET_OP_RELU2:
    case BITNET_OP_SILU:
    case BITNET_OP_GELU:
    case BITNET_OP_SIGMOID:
      m.op(op, {g.f32()}, {g.result()});
      return true;
    case BITNET_OP_COLUMNS: {
      bitnet_op& part = m.op(op, {g.f32()}, {g.result(head_dim)});
      part.ints[0] = head_dim;
      part.ints[2] = part.ints[4] = 1;
      return true;
    }
    case BITNET_OP_GATHER_ROWS:
      m.op(op, {g.f32()}, {g.goes_out(BITNET_DTYPE_F32, width, BITNET_DIM_OUTPUTS)});
      return true;
    default:
      return false;
  }
}

// That knows places in a sequence, by keys and values or states.
bool add_sequence_op(small_graph& g, uint32_t op, uint32_t format) {
  model& m = g.made;
  const uint32_t dense = format == BITNET_FORMAT_NONE ? BITNET_FORMAT_F32 : format;
  switch (op) {
    case BITNET_OP_ROPE:
      g.rotate(m.op(op, {g.f32()}, {g.result()}));
      return true;
    case BITNET_OP_KV_WRITE:
      m.op(op, {g.f32(), g.f32()}, {});
      return true;
    case BITNET_OP_ATTN_PAGED:
      g.attend(m.op(op, {g.f32()}, {g.result()}));
      return true;
    case BITNET_OP_SHORT_CONV:
      m.op(op, {g.f32()}, {g.result()}, {m.dense(dense, 4, width, g.random)});
      m.state_elements = 3 * width;
      return true;
    case BITNET_OP_DELTA_GATES:
      m.op(op, {g.f32(), g.f32()}, {g.result(2 * width)}, {m.dense(dense, width, 2, g.random)});
      return true;
    case BITNET_OP_DELTA_RULE: {
      bitnet_op& rule = m.op(
          op, {g.comes_in(BITNET_DTYPE_F32, 3 * width), g.comes_in(BITNET_DTYPE_F32, 2 * heads)},
          {g.result()});
      rule.ints[1] = rule.ints[2] = heads;
      rule.ints[3] = rule.ints[4] = head_dim;
      rule.floats[0] = 1;
      m.state_elements = heads * head_dim * head_dim;
      return true;
    }
    default:
      return false;
  }
}

void add_bit_linear(small_graph& g) {
  model& m = g.made;
  const uint32_t x = g.f32(), y = g.result(rows);
  const uint32_t q = m.value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, width);
  const uint32_t s = m.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, 1);
  m.op(BITNET_OP_BIT_LINEAR, {x}, {y}).body_count = 2;
  m.op(BITNET_OP_ACT_QUANT_I8, {x}, {q, s});
  m.op(BITNET_OP_LINEAR_TERNARY, {q, s}, {y}, {m.ternary(width, rows, 0, g.random)});
}

}  // namespace

model one_op_model(uint32_t op, uint32_t format) {
  small_graph g;
  g.made.logits = BITNET_NONE;
  switch (op) {
    case BITNET_OP_QKV_ROPE_KV:
    case BITNET_OP_ATTN_OUT:
    case BITNET_OP_FFN_RELU2_GATED:
    case BITNET_OP_FFN_SILU_GATED:
    case BITNET_OP_LM_HEAD:
      return composite(op, format);
    case BITNET_OP_BIT_LINEAR:
      add_bit_linear(g);
      break;
    default:
      if (!add_product(g, op, format) && !add_row_op(g, op, format) && !add_element_op(g, op) &&
          !add_sequence_op(g, op, format))
        g.made.op(op, {g.f32()}, {g.result()});  // of which nothing is known
  }
  return std::move(g.made);
}

}  // namespace bitnet::conformance
