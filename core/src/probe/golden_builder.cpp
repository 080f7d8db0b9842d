#include "probe/golden_builder.hpp"

#include <utility>

namespace bitnet::probe::golden {

builder::builder(std::string name, uint32_t tokens) {
  out_.name = std::move(name);
  out_.tokens = tokens;
}

builder::builder(std::string name, element input, uint32_t tokens, uint32_t columns,
                 uint32_t format)
    : builder(std::move(name), tokens) {
  x = rows_of(input, columns, format);
}

uint32_t builder::rows_of(element input, uint32_t columns, uint32_t format, float unit) {
  const uint32_t y = value(columns);
  emit(BITNET_OP_EMBED_GATHER, {}, {y}, {matrix(format, columns, out_.tokens, input, 2, unit)});
  return y;
}

uint32_t builder::matrix(uint32_t format, uint32_t columns, uint32_t rows, element at,
                         uint32_t rank, float unit) {
  out_.weights.push_back({format, columns, rows, rank, bytes_of(format, columns, rows, at, unit)});
  return static_cast<uint32_t>(out_.weights.size() - 1);
}

uint32_t builder::ternary(uint32_t columns, uint32_t rows, element at, uint32_t group,
                          std::vector<float> factors) {
  const uint32_t w = matrix(BITNET_FORMAT_TERNARY2, columns, rows, at);
  out_.weights[w].group = group;
  if (group != 0) out_.weights[w].factors = std::move(factors);
  return w;
}

uint32_t builder::norm(uint32_t from, int64_t rows) {
  const uint32_t y = value(width, BITNET_DTYPE_F32, rows);
  // The epsilon is too small to change a mean square of 1.
  emit(BITNET_OP_RMS_NORM, {from}, {y}, {matrix(BITNET_FORMAT_F32, width, 1, norm_weight, 1)})
      .floats[0] = 1e-9F;
  return y;
}

builder::quantised builder::quantise(uint32_t from, uint32_t columns) {
  const quantised out{value(columns, BITNET_DTYPE_I8), value(1)};
  emit(BITNET_OP_ACT_QUANT_I8, {from}, {out.q, out.s});
  return out;
}

uint32_t builder::linear(quantised in, uint32_t rows, uint32_t weight) {
  const uint32_t y = value(rows);
  emit(BITNET_OP_LINEAR_TERNARY, {in.q, in.s}, {y}, {weight});
  return y;
}

uint32_t builder::unary(uint32_t op, uint32_t from, uint32_t columns) {
  const uint32_t y = value(columns);
  emit(op, {from}, {y});
  return y;
}

uint32_t builder::binary(uint32_t op, uint32_t a, uint32_t b, uint32_t columns) {
  const uint32_t y = value(columns);
  emit(op, {a, b}, {y});
  return y;
}

golden_program builder::gathered(uint32_t y, uint32_t columns, std::vector<uint32_t> blamed,
                                 double (*expected)(uint32_t, uint32_t)) {
  const uint32_t logits = value(columns, BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS);
  emit(BITNET_OP_GATHER_ROWS, {y}, {logits});
  return finished(logits, columns, std::move(blamed), expected);
}

golden_program builder::with_state(golden_program program, uint32_t elements) {
  program.tokens = golden_tokens;
  program.positions = golden_state_positions;
  program.state_elements = elements;
  return program;
}

golden_program builder::finished(uint32_t logits, uint32_t columns, std::vector<uint32_t> blamed,
                                 double (*expected)(uint32_t, uint32_t)) {
  out_.graph.add_facts();
  out_.graph.add_port(BITNET_PORT_LOGITS, logits);
  out_.columns = columns;
  out_.blamed = std::move(blamed);
  out_.expected = expected;
  return std::move(out_);
}

}  // namespace bitnet::probe::golden
