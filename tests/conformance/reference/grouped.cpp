// ACT_QUANT_I8_GROUPED and LINEAR_TERNARY_GROUPED: integer sums of the shorter groups, then the
// scales in f32 in the order that ops.h says. Exact.

#include "reference/grouped.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/formats.hpp"
#include "reference/op_case.hpp"

namespace bitnet::conformance {

grouped_codes act_quant_grouped(std::span<const float> x, uint64_t group) {
  grouped_codes out;
  for (uint64_t first = 0; first < x.size(); first += group) {
    float largest = 1e-30f;
    for (const float v : x.subspan(first, group)) largest = std::max(largest, std::fabs(v));
    const float scale = 127.0f / largest;
    for (const float v : x.subspan(first, group)) {
      const float code = std::clamp(std::nearbyint(v * scale), -127.0f, 127.0f);
      out.q.push_back(std::isnan(code) ? int8_t{0} : static_cast<int8_t>(code));
    }
    out.factors.push_back(largest / 127.0f);
  }
  return out;
}

namespace {

struct grouped_shape {
  int64_t k, m;
  uint64_t tokens;
  uint64_t group, given;  // of weights (0: one scale), of activations
  const char* why;
};

// What stands before a product: rows, their codes and factors.
struct quantiser {
  uint32_t q, d;
};
quantiser quantise(op_case& c, int64_t k, uint64_t group, const std::vector<float>& rows) {
  const uint32_t x = input_rows(c.graph, k, rows);
  const auto g = static_cast<int64_t>(group);
  const quantiser out{c.graph.value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, k),
                      c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k / g)};
  c.graph.op(BITNET_OP_ACT_QUANT_I8_GROUPED, {x}, {out.q, out.d}).ints[0] =
      static_cast<int32_t>(group);
  return out;
}

float row_result(const model_tensor& w, uint64_t r, const grouped_codes& x, uint64_t k) {
  const uint8_t* row = w.data.data() + r * row_bytes(BITNET_FORMAT_TERNARY2, k);
  const uint64_t own = w.desc.scale_group == 0 ? k : w.desc.scale_group;
  const uint64_t given = k / x.factors.size();
  const bool activations_first = given <= own;
  float total = 0;
  for (uint64_t first = 0; first < k; first += std::max(own, given)) {
    float inner = 0;
    const uint64_t last = first + std::max(own, given);
    for (uint64_t at = first; at < last; at += std::min(own, given)) {
      int32_t sum = 0;
      for (uint64_t i = at; i < at + std::min(own, given); ++i)
        sum += static_cast<int32_t>(element(BITNET_FORMAT_TERNARY2, row, i)) * x.q[i];
      const float scale = w.scales[w.desc.scale_group == 0 ? 0 : (r * k + at) / own];
      const float part =
          static_cast<float>(sum) * (activations_first ? x.factors[at / given] : scale);
      inner = inner + part;
    }
    const float scale = w.scales[w.desc.scale_group == 0 ? 0 : (r * k + first) / own];
    const float part = inner * (activations_first ? scale : x.factors[first / given]);
    total = total + part;
  }
  return total;
}

std::vector<float> random_rows(uint64_t elements, std::mt19937& random) {
  std::vector<float> out(elements);
  for (float& x : out) x = uniform(random, -3, 3);
  return out;
}

op_case product_case(const grouped_shape& s) {
  op_case c;
  c.op = BITNET_OP_LINEAR_TERNARY_GROUPED;
  c.format = BITNET_FORMAT_TERNARY2;
  c.why = s.why;
  std::mt19937 random(static_cast<uint32_t>(s.k * 131 + s.m));
  const auto k = static_cast<uint64_t>(s.k), m = static_cast<uint64_t>(s.m);
  const uint64_t patterns = std::min(m, pattern_count), inputs = std::min(s.tokens, input_count);
  const std::vector<float> rows = random_rows(k * inputs, random);
  const quantiser x = quantise(c, s.k, s.given, rows);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, s.m);
  const uint32_t w = ternary_rows(c.graph, k, m, s.group, -0.01f, 0.06f, random);
  c.graph.op(BITNET_OP_LINEAR_TERNARY_GROUPED, {x.q, x.d}, {y}, {w});
  output_rows(c.graph, y);
  repeated_rows(c, s.tokens, inputs);
  std::vector<double> answers;  // (inputs, patterns)
  for (uint64_t d = 0; d < inputs; ++d) {
    const grouped_codes in = act_quant_grouped(std::span(rows).subspan(d * k, k), s.given);
    for (uint64_t p = 0; p < patterns; ++p)
      answers.push_back(static_cast<double>(row_result(c.graph.tensors[w], p, in, k)));
  }
  for (const int32_t d : c.tokens)
    for (uint64_t r = 0; r < m; ++r)
      c.expected.push_back(answers[static_cast<uint64_t>(d) * patterns + pattern_at(r, patterns)]);
  c.allowed.assign(c.expected.size(), 0);
  return c;
}

// The codes cannot be seen themselves: a ternary identity after them gives q * d.
op_case quant_case(int64_t k, uint64_t group, const std::vector<float>& rows, bool codes,
                   const std::string& why) {
  op_case c;
  c.op = BITNET_OP_ACT_QUANT_I8_GROUPED;
  c.why = why + ", groups of " + std::to_string(group) + (codes ? ": codes" : ": factors");
  const auto width = static_cast<uint64_t>(k);
  const uint64_t tokens = rows.size() / width;
  const quantiser x = quantise(c, k, group, rows);
  const uint64_t shown = std::min<uint64_t>(width, 512);
  if (codes) {
    std::vector<int8_t> identity(width * shown);
    for (uint64_t i = 0; i < shown; ++i) identity[i * width + (i + width - shown)] = 1;
    const auto height = static_cast<int64_t>(shown);
    const uint32_t w = c.graph.tensor(BITNET_FORMAT_TERNARY2, k, height,
                                      pack_ternary(identity, width, shown), {1.0f});
    const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, height);
    c.graph.op(BITNET_OP_LINEAR_TERNARY_GROUPED, {x.q, x.d}, {y}, {w});
    output_rows(c.graph, y);
  } else {
    output_rows(c.graph, x.d);
  }
  all_rows(c, tokens);
  c.block_tokens = 64;
  for (uint64_t t = 0; t < tokens; ++t) {
    const grouped_codes r = act_quant_grouped(std::span(rows).subspan(t * width, width), group);
    if (!codes)
      for (const float d : r.factors) c.expected.push_back(static_cast<double>(d));
    for (uint64_t i = width - shown; codes && i < width; ++i)
      c.expected.push_back(static_cast<double>(static_cast<float>(r.q[i]) * r.factors[i / group]));
  }
  c.allowed.assign(c.expected.size(), 0);
  return c;
}

}  // namespace

size_cases act_quant_grouped_sizes() {
  size_cases out;
  const struct {
    const char* name;
    int64_t k;
    uint64_t tokens, group;
    bool codes;
  } rows[] = {{"factors_12288_columns_65_tokens", 12288, 65, 32, false},
              {"factors_513_tokens", 128, 513, 64, false},
              {"codes_12288_columns", 12288, 3, 128, true},
              {"codes_513_tokens", 160, 513, 32, true}};
  for (const auto& row : rows)
    out.push_back({BITNET_OP_ACT_QUANT_I8_GROUPED, BITNET_FORMAT_NONE, row.name, [row] {
                     std::mt19937 random(7);
                     const auto k = static_cast<uint64_t>(row.k);
                     op_case c = quant_case(row.k, row.group, random_rows(k * row.tokens, random),
                                            row.codes, row.name);
                     c.max_blocks = 9;
                     return c;
                   }});
  return out;
}

size_cases linear_ternary_grouped_sizes() {
  const struct {
    const char* name;
    grouped_shape s;
  } rows[] = {
      {"12288x4096", {4096, 12288, 2, 128, 32, "gate and up of an 8B model"}},
      {"4096x12288", {12288, 4096, 2, 128, 32, "its down"}},
      {"5120x17408_128", {17408, 5120, 1, 128, 128, "down of a rotated 27B model"}},
      {"151669x512", {512, 151669, 1, 128, 32, "a ternary head, odd"}},
      {"701_rows_513_tokens", {160, 701, 513, 160, 32, "one past a long prompt"}},
      {"17_rows_512_tokens", {6912, 17, 512, 64, 128, "a long prompt, wide rows"}},
      {"3001x9728_one_scale", {9728, 3001, 3, 0, 32, "one scale for all"}},
  };
  size_cases out;
  for (const auto& row : rows)
    out.push_back({BITNET_OP_LINEAR_TERNARY_GROUPED, BITNET_FORMAT_TERNARY2, row.name,
                   [s = row.s] { return product_case(s); }});
  return out;
}

op_cases act_quant_grouped_cases() {
  std::mt19937 random(3);
  const std::vector<float> halves = {127.0f,  0.5f,  1.5f,   2.5f,    -0.5f, -1.5f, -2.5f, 126.5f,
                                     -126.5f, 3.49f, -3.51f, -127.0f, 0.0f,  64.5f, 65.5f, -64.5f};
  std::vector<float> exact(64), zeros(64, 0.0f), tiny(64), uneven = random_rows(256, random);
  for (uint64_t i = 0; i < exact.size(); ++i) exact[i] = halves[i % halves.size()];
  for (uint64_t i = 0; i < tiny.size(); ++i) tiny[i] = 1e-32f * static_cast<float>(i);
  for (uint64_t i = 0; i < uneven.size(); ++i)
    uneven[i] *= std::ldexp(1.0f, static_cast<int>(i / 16));
  op_cases out;
  for (const bool codes : {true, false}) {
    out.push_back(quant_case(64, 32, exact, codes, "halves go to the even neighbour"));
    out.push_back(quant_case(64, 64, zeros, codes, "rows of zeros"));
    out.push_back(quant_case(64, 32, tiny, codes, "less than the floor of 1e-30"));
    out.push_back(quant_case(256, 32, uneven, codes, "groups of unlike size"));
    for (const uint64_t group : {32, 64, 128})
      out.push_back(
          quant_case(640, group, random_rows(uint64_t{640} * 5, random), codes, "five rows"));
  }
  return out;
}

op_cases linear_ternary_grouped_cases() {
  const grouped_shape shapes[] = {
      {32, 1, 1, 0, 32, "one group, one scale"},
      {32, 3, 2, 32, 32, "one group of each"},
      {96, 17, 3, 96, 32, "a scale for each row"},
      {128, 44, 7, 128, 32, "four groups of activations to one of weights"},
      {128, 5, 1, 32, 128, "four groups of weights to one of activations"},
      {256, 33, 5, 128, 128, "groups that are equally long"},
      {320, 16, 2, 64, 32, "a row that is padded"},
      {320, 9, 1, 64, 64, "a row that is padded, groups of 64"},
      {640, 20, 16, 128, 64, "sixteen tokens"},
      {2048, 12, 33, 128, 32, "more tokens than a tile"},
      {512, 17, 1, 256, 64, "long groups of weights"},
      {16384, 2, 1, 0, 32, "more groups than are kept at once, one scale"},
      {16384, 2, 2, 16384, 32, "the same, a scale for each row"},
      {16384, 3, 1, 8192, 32, "the longest groups of weights"},
  };
  op_cases out;
  for (const grouped_shape& s : shapes) {
    out.push_back(product_case(s));
    out.back().block_tokens = 64;
  }
  return out;
}

}  // namespace bitnet::conformance
