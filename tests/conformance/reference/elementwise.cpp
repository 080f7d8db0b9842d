// ADD, MUL, SCALE, RELU2, SILU, GELU, SIGMOID, element by element, and GATHER_ROWS.

#include <cmath>
#include <initializer_list>
#include <limits>

#include "reference/arithmetic.hpp"
#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

constexpr std::initializer_list<uint32_t> elementwise = {
    BITNET_OP_ADD,  BITNET_OP_MUL,  BITNET_OP_SCALE,  BITNET_OP_RELU2,
    BITNET_OP_SILU, BITNET_OP_GELU, BITNET_OP_SIGMOID};
constexpr float scale_factor = 50.596443f;  // of SCALE: sqrt(2560), no power of two

double tolerance(uint32_t op, float a, double y) {
  if (op != BITNET_OP_SILU && op != BITNET_OP_GELU && op != BITNET_OP_SIGMOID) return 0;
  const auto x = static_cast<double>(a);
  const double argument = op == BITNET_OP_GELU ? gelu_argument(x) : x, size = std::fabs(argument);
  double of_exponential = (3 + 2 * size) * ulp;
  // GELU's argument: two constants, three products and a sum, all of one sign.
  if (op == BITNET_OP_GELU) of_exponential += 6 * unit * size;
  // The exponential's error reaches the divisor as its share of it says, taken as 1 but for GELU.
  const double share = op != BITNET_OP_GELU ? 1 : 1 / (1 + std::exp(argument));
  const double relative = share * of_exponential + unit + 2.5 * ulp;  // a sum and a quotient
  constexpr double smallest_normal = 1.2e-38;  // below it a device may give 0
  return std::isfinite(y) ? relative * std::fabs(y) + smallest_normal : 0;
}

op_case element_case(uint32_t op, int64_t k, uint64_t tokens, bool special, std::string why) {
  op_case c;
  c.op = op;
  c.why = std::move(why);
  std::mt19937 random(static_cast<uint32_t>(k) * 3 + op);
  std::vector<float> a(static_cast<uint64_t>(k) * tokens), b(a.size());
  for (float& x : a) x = uniform(random, -10, 10);
  for (float& x : b) x = uniform(random, -10, 10);
  if (special) {
    const float some[] = {0.0f, -0.0f, infinity, 100.0f, -100.0f, 1e-15f, 1e18f, -1.0f};
    for (uint64_t i = 0; i < a.size(); ++i) a[i] = some[i % std::size(some)];
    for (float& x : b) x = 2.5f;
  }
  const bool two = op == BITNET_OP_ADD || op == BITNET_OP_MUL;
  const uint32_t x = input_rows(c.graph, k, a);
  const uint32_t other = two ? input_rows(c.graph, k, b) : BITNET_NONE;
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
  bitnet_op& made = c.graph.op(op, {x, other}, {y});
  if (op == BITNET_OP_SCALE) made.floats[0] = scale_factor;
  output_rows(c.graph, y);
  all_rows(c, tokens);
  for (uint64_t i = 0; i < a.size(); ++i) {
    c.expected.push_back(element_result(op, a[i], op == BITNET_OP_SCALE ? scale_factor : b[i]));
    c.allowed.push_back(tolerance(op, a[i], c.expected.back()));
  }
  return c;
}

}  // namespace

size_cases elementwise_sizes() {
  const struct {
    const char* name;
    int64_t k;
    uint64_t tokens;
  } rows[] = {
      {"6912_columns_65_tokens", 6912, 65}, {"6913_columns", 6913, 3}, {"513_tokens", 33, 513}};
  size_cases out;
  for (const uint32_t op : elementwise)
    for (const auto& row : rows)
      out.push_back({op, BITNET_FORMAT_NONE, row.name, [op, row] {
                       op_case c = element_case(op, row.k, row.tokens, false, row.name);
                       c.tokens.clear();
                       repeated_rows(c, row.tokens, row.tokens);
                       return c;
                     }});
  return out;
}

size_cases gather_rows_sizes() {
  const struct {
    const char* name;
    int64_t k;
    uint64_t tokens, outputs;
  } rows[] = {{"640_columns_512_tokens", 640, 512, 512},
              {"6913_columns", 6913, 3, 2},
              {"513_tokens", 33, 513, 513}};
  size_cases out;
  for (const auto& row : rows)
    out.push_back({BITNET_OP_GATHER_ROWS, BITNET_FORMAT_NONE, row.name, [row] {
                     op_case c;
                     c.op = BITNET_OP_GATHER_ROWS;
                     c.why = row.name;
                     std::mt19937 random(static_cast<uint32_t>(row.k));
                     const auto width = static_cast<uint64_t>(row.k);
                     std::vector<float> x(width * row.tokens);
                     for (float& v : x) v = uniform(random, -1, 1);
                     output_rows(c.graph, input_rows(c.graph, row.k, x));
                     repeated_rows(c, row.tokens, row.tokens);
                     // From the last to the first.
                     for (uint64_t o = 0; o < row.outputs; ++o)
                       c.outputs.push_back(static_cast<int32_t>(row.tokens - 1 - o));
                     for (const int32_t o : c.outputs)
                       for (uint64_t i = 0; i < width; ++i)
                         c.expected.push_back(
                             static_cast<double>(x[static_cast<uint64_t>(o) * width + i]));
                     c.allowed.assign(c.expected.size(), 0);
                     return c;
                   }});
  return out;
}

op_cases elementwise_cases() {
  op_cases out;
  for (const uint32_t op : elementwise) {
    out.push_back(element_case(op, 1, 1, false, "one element"));
    out.push_back(element_case(op, 33, 3, false, "an odd width"));
    out.push_back(element_case(op, 640, 16, false, "sixteen rows"));
    out.push_back(element_case(op, 16, 2, true, "zeros, infinities, large and small"));
  }
  return out;
}

op_cases gather_rows_cases() {
  op_cases out;
  const struct {
    int64_t k;
    uint64_t tokens;
    std::vector<int32_t> outputs;
    const char* why;
  } rows[] = {{33, 5, {4}, "the last row"},
              {33, 5, {4, 0, 4, 2}, "in another order, one twice"},
              {1, 3, {0, 1, 2}, "one column"},
              {640, 16, {15, 1}, "two of sixteen"}};
  for (const auto& row : rows) {
    op_case c;
    c.op = BITNET_OP_GATHER_ROWS;
    c.why = row.why;
    std::mt19937 random(static_cast<uint32_t>(row.k));
    const auto width = static_cast<uint64_t>(row.k);
    std::vector<float> x(width * row.tokens);
    for (float& v : x) v = uniform(random, -1, 1);
    output_rows(c.graph, input_rows(c.graph, row.k, x));
    all_rows(c, row.tokens);
    c.outputs = row.outputs;
    for (const int32_t o : row.outputs)
      for (uint64_t i = 0; i < width; ++i)
        c.expected.push_back(static_cast<double>(x[static_cast<uint64_t>(o) * width + i]));
    c.allowed.assign(c.expected.size(), 0);
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace bitnet::conformance
