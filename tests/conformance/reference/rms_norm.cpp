// RMS_NORM and RMS_NORM_HEADS: x * (1 / sqrt(mean + eps)) * weight.

#include <cmath>

#include "model/formats.hpp"
#include "reference/arithmetic.hpp"
#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

// The mean is rounded, eps added: half of each comes through the root. Root 3 ulp, quotient 2.5,
// two products; the sum itself is taken in double.
constexpr double norm_tolerance = unit / 2 + unit / 2 + 3 * ulp + 2.5 * ulp + 2 * unit;

op_case norm_case(int64_t k, uint64_t tokens, float size, float eps, std::string why,
                  int32_t heads = 0) {
  op_case c;
  c.op = heads == 0 ? BITNET_OP_RMS_NORM : BITNET_OP_RMS_NORM_HEADS;
  c.format = BITNET_FORMAT_F32;
  c.why = std::move(why);
  std::mt19937 random(static_cast<uint32_t>(k * 31) + static_cast<uint32_t>(tokens));
  std::vector<float> rows(static_cast<uint64_t>(k) * tokens);
  for (float& x : rows) x = uniform(random, -size, size);
  if (tokens == 3)  // the last row has a few large elements
    for (uint64_t i = 2 * static_cast<uint64_t>(k); i < rows.size(); i += 7) rows[i] *= 1000;
  const uint32_t x = input_rows(c.graph, k, rows);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
  const int64_t part = heads == 0 ? k : k / heads;  // that has a mean of its own
  const uint32_t w = c.graph.dense(BITNET_FORMAT_F32, part, 1, random);
  bitnet_op& norm = c.graph.op(c.op, {x}, {y}, {w});
  norm.ints[0] = heads;
  norm.floats[0] = eps;
  output_rows(c.graph, y);
  all_rows(c, tokens);
  const uint8_t* weights = c.graph.tensors[w].data.data();
  const auto width = static_cast<uint64_t>(part);
  for (uint64_t t = 0; t < rows.size() / width; ++t) {
    const double factor = norm_factor(std::span(rows).subspan(t * width, width), eps);
    for (uint64_t i = 0; i < width; ++i) {
      const double value = static_cast<double>(rows[t * width + i]) * factor *
                           element(BITNET_FORMAT_F32, weights, i);
      c.expected.push_back(value);
      c.allowed.push_back(norm_tolerance * std::fabs(value));
    }
  }
  return c;
}

}  // namespace

size_cases rms_norm_sizes() {
  const struct {
    const char* name;
    int64_t k;
    uint64_t tokens;
  } rows[] = {
      {"6912_columns_65_tokens", 6912, 65}, {"6913_columns", 6913, 3}, {"513_tokens", 130, 513}};
  size_cases out;
  for (const auto& row : rows)
    out.push_back({BITNET_OP_RMS_NORM, BITNET_FORMAT_F32, row.name, [row] {
                     op_case c = norm_case(row.k, row.tokens, 4.0f, 1e-5f, row.name);
                     c.tokens.clear();
                     repeated_rows(c, row.tokens, row.tokens);
                     return c;
                   }});
  const struct {
    const char* name;
    int64_t head_dim;
    int32_t heads;
    uint64_t tokens;
  } heads[] = {{"64x128", 128, 64, 3}, {"3x256_513_tokens", 256, 3, 513}};
  for (const auto& row : heads)
    out.push_back({BITNET_OP_RMS_NORM_HEADS, BITNET_FORMAT_F32, row.name, [row] {
                     op_case c = norm_case(row.head_dim * row.heads, row.tokens, 4.0f, 1e-6f,
                                           row.name, row.heads);
                     c.tokens.clear();
                     repeated_rows(c, row.tokens, row.tokens);
                     return c;
                   }});
  return out;
}

op_cases rms_norm_cases() {
  op_cases out;
  for (const int64_t k : {1, 7, 32, 100, 128, 257, 640, 2560})
    out.push_back(norm_case(k, 3, 4.0f, 1e-5f, "width " + std::to_string(k)));
  out.push_back(norm_case(128, 16, 4.0f, 1e-6f, "sixteen rows"));
  out.push_back(norm_case(128, 2, 0.0f, 1e-5f, "rows of zeros"));
  out.push_back(norm_case(128, 2, 1e-4f, 1e-5f, "rows that eps outweighs"));
  out.push_back(norm_case(128, 2, 1e15f, 1e-5f, "squares near 1e30"));
  for (const int32_t heads : {1, 3, 8})
    for (const int64_t head_dim : {1, 20, 64, 128})
      out.push_back(norm_case(head_dim * heads, 3, 4.0f, 1e-6f,
                              std::to_string(heads) + " heads of " + std::to_string(head_dim),
                              heads));
  return out;
}

}  // namespace bitnet::conformance
