#include "reference/act_quant.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/op_case.hpp"

namespace bitnet::conformance {

quantised act_quant(std::span<const float> x) {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::fabs(v));
  quantised out{{}, 127.0f / std::max(largest, 1e-5f)};
  for (const float v : x) {
    const float code = std::clamp(std::nearbyint(v * out.scale), -128.0f, 127.0f);
    out.q.push_back(std::isnan(code) ? int8_t{0} : static_cast<int8_t>(code));  // may be anything
  }
  return out;
}

namespace {

// The codes cannot be seen themselves: a ternary identity after them gives q / s.
op_case quant_case(int64_t k, std::vector<float> rows, bool codes, std::string why) {
  op_case c;
  c.op = BITNET_OP_ACT_QUANT_I8;
  c.why = std::move(why) + (codes ? ": codes" : ": scale");
  const auto width = static_cast<uint64_t>(k);
  const uint64_t tokens = rows.size() / width;
  const uint32_t x = input_rows(c.graph, k, rows);
  const uint32_t q = c.graph.value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, k);
  const uint32_t s = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, 1);
  c.graph.op(BITNET_OP_ACT_QUANT_I8, {x}, {q, s});
  if (codes) {
    std::vector<int8_t> identity(width * width);
    for (uint64_t i = 0; i < width; ++i) identity[i * width + i] = 1;
    const uint32_t w =
        c.graph.tensor(BITNET_FORMAT_TERNARY2, k, k, pack_ternary(identity, width, width), {1.0f});
    const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, k);
    c.graph.op(BITNET_OP_LINEAR_TERNARY, {q, s}, {y}, {w});
    output_rows(c.graph, y);
  } else {
    output_rows(c.graph, s);
  }
  all_rows(c, tokens);
  for (uint64_t t = 0; t < tokens; ++t) {
    const quantised r = act_quant(std::span(rows).subspan(t * width, width));
    if (!codes) c.expected.push_back(static_cast<double>(r.scale));
    for (uint64_t i = 0; codes && i < width; ++i)
      c.expected.push_back(static_cast<double>(static_cast<float>(r.q[i]) / r.scale));
  }
  c.allowed.assign(c.expected.size(), 0);
  return c;
}

std::vector<float> random_rows(int64_t k, uint64_t tokens, float size) {
  std::mt19937 random(static_cast<uint32_t>(k));
  std::vector<float> out(static_cast<uint64_t>(k) * tokens);
  for (float& x : out) x = uniform(random, -size, size);
  return out;
}

// Rows whose largest element is the last, the first, or anywhere.
std::vector<float> peaked_rows(int64_t k, uint64_t tokens) {
  std::vector<float> out = random_rows(k, tokens, 3);
  const auto width = static_cast<uint64_t>(k);
  for (uint64_t t = 0; t < tokens; ++t)
    out[t * width + (t == 0 ? width - 1 : t * 2654435761u % width)] = 3.5f;
  return out;
}

// Rows whose products with the scale lie at halves, as near as f32 comes.
std::vector<float> halved_rows(int64_t k, uint64_t tokens) {
  std::mt19937 random(static_cast<uint32_t>(k));
  const auto width = static_cast<uint64_t>(k);
  std::vector<float> out(width * tokens);
  for (uint64_t t = 0; t < tokens; ++t) {
    const float largest = uniform(random, 0.5f, 4.0f), scale = 127.0f / largest;
    for (uint64_t i = 0; i < width; ++i)
      out[t * width + i] = (static_cast<float>(random() % 253) - 126.5f) / scale;
    out[t * width + 5] = -largest;
  }
  return out;
}

// Every code of wide rows in one of a few sums: row r of the weights takes the columns r, r + n ...
// with signs that alternate, so that what one code is off by shows.
op_case summed_codes(int64_t k, uint64_t tokens, uint64_t n) {
  op_case c;
  c.op = BITNET_OP_ACT_QUANT_I8;
  c.why = "codes in sums";
  const auto width = static_cast<uint64_t>(k);
  const std::vector<float> rows = peaked_rows(k, tokens);
  const uint32_t x = input_rows(c.graph, k, rows);
  const uint32_t q = c.graph.value(BITNET_DTYPE_I8, BITNET_DIM_TOKENS, k);
  const uint32_t s = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, 1);
  c.graph.op(BITNET_OP_ACT_QUANT_I8, {x}, {q, s});
  std::vector<int8_t> t(width * n);
  for (uint64_t i = 0; i < width; ++i) t[i % n * width + i] = i / n % 2 == 0 ? 1 : -1;
  const auto m = static_cast<int64_t>(n);
  const uint32_t w =
      c.graph.tensor(BITNET_FORMAT_TERNARY2, k, m, pack_ternary(t, width, n), {1.0f});
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, m);
  c.graph.op(BITNET_OP_LINEAR_TERNARY, {q, s}, {y}, {w});
  output_rows(c.graph, y);
  repeated_rows(c, tokens, tokens);
  for (uint64_t at = 0; at < tokens; ++at) {
    const quantised r = act_quant(std::span(rows).subspan(at * width, width));
    std::vector<int32_t> sums(n);
    for (uint64_t i = 0; i < width; ++i) sums[i % n] += (i / n % 2 == 0 ? 1 : -1) * r.q[i];
    for (const int32_t sum : sums)
      c.expected.push_back(static_cast<double>(static_cast<float>(sum) / r.scale));
  }
  c.allowed.assign(c.expected.size(), 0);
  return c;
}

}  // namespace

size_cases act_quant_sizes() {
  size_cases out;
  const auto add = [&](const char* name, std::function<op_case()> make) {
    out.push_back({BITNET_OP_ACT_QUANT_I8, BITNET_FORMAT_NONE, name, std::move(make)});
  };
  const auto scales = [](int64_t k, uint64_t tokens) {
    op_case c = quant_case(k, peaked_rows(k, tokens), false, "usual sizes");
    c.tokens.clear();
    repeated_rows(c, tokens, tokens);
    return c;
  };
  add("scales_6912_columns_65_tokens", [scales] { return scales(6912, 65); });
  add("scales_6913_columns", [scales] { return scales(6913, 3); });
  add("scales_513_tokens", [scales] { return scales(130, 513); });
  add("codes_6912_columns_512_tokens", [] { return summed_codes(6912, 512, 17); });
  add("codes_6913_columns", [] { return summed_codes(6913, 3, 101); });
  add("codes_513_tokens", [] { return summed_codes(130, 513, 130); });
  return out;
}

op_cases act_quant_cases() {
  // 127 / 127 = 1: every value is its own code, so that the halves are seen as they are.
  const std::vector<float> halves = {127.0f,  0.5f,  1.5f,   2.5f,    -0.5f, -1.5f, -2.5f, 126.5f,
                                     -126.5f, 3.49f, -3.51f, -127.0f, 0.0f,  64.5f, 65.5f, -64.5f};
  std::vector<float> zeros(64, 0.0f), tiny(64, 0.0f), one(32, 0.0f);
  for (uint64_t i = 0; i < tiny.size(); ++i) tiny[i] = 1e-7f * static_cast<float>(i);
  one[31] = -3.0f;
  std::vector<float> huge(64, 1e30f);
  huge[3] = 3e38f;
  const struct {
    int64_t k;
    std::vector<float> rows;
    const char* why;
  } rows[] = {
      {16, halves, "halves go to the even neighbour"},
      {64, zeros, "rows of zeros"},
      {64, tiny, "less than the floor of 1e-5"},
      {32, one, "one element, the last and negative"},
      {1, {2.5f, -0.25f, 0.0f}, "one column"},
      {33, random_rows(33, 3, 2), "one past a block"},
      {100, random_rows(100, 2, 1e4f), "large values"},
      {128, random_rows(128, 16, 1), "sixteen rows"},
      {640, random_rows(640, 2, 3), "a usual width"},
      {128, halved_rows(128, 20), "products that lie at halves"},
      {64, huge, "values near the largest"},
  };
  op_cases out;
  for (const auto& row : rows) {
    out.push_back(quant_case(row.k, row.rows, true, row.why));
    out.push_back(quant_case(row.k, row.rows, false, row.why));
  }
  std::vector<float> infinite = random_rows(64, 1, 1);
  infinite[7] = -std::numeric_limits<float>::infinity();
  out.push_back(quant_case(64, infinite, false, "an infinite element"));
  return out;
}

}  // namespace bitnet::conformance
