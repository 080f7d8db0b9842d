// LINEAR_DENSE: y = W x in any order of sums.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "model/formats.hpp"
#include "reference/op_case.hpp"

namespace bitnet::conformance {
namespace {

op_case dense_case(uint32_t format, int64_t k, int64_t m, uint64_t tokens, std::string why,
                   uint32_t precision = BITNET_PRECISION_F32) {
  op_case c;
  if (precision != BITNET_PRECISION_F32) c.precisions = 1u << precision;
  c.op = BITNET_OP_LINEAR_DENSE;
  c.format = format;
  c.why = std::move(why);
  std::mt19937 random(format * 7919 + static_cast<uint32_t>(k));
  const auto width = static_cast<uint64_t>(k);
  std::vector<float> rows(width * tokens);
  for (float& x : rows) x = uniform(random, -2, 2);
  const uint32_t x = input_rows(c.graph, k, rows);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, m);
  const uint32_t w = c.graph.dense(format, k, m, random);
  c.graph.tensors[w].desc.rank = 2;
  c.graph.op(BITNET_OP_LINEAR_DENSE, {x}, {y}, {w});
  output_rows(c.graph, y);
  all_rows(c, tokens);
  // Any order of n products and n - 1 sums: n roundings on the longest path, each of them of a part
  // that is no larger than the sum of all sizes.
  const double roundings = static_cast<double>(k) * unit;
  for (uint64_t t = 0; t < tokens; ++t)
    for (uint64_t r = 0; r < static_cast<uint64_t>(m); ++r) {
      const uint8_t* row = c.graph.tensors[w].data.data() + r * row_bytes(format, width);
      double sum = 0, sizes = 0, slack = 0;
      for (uint64_t i = 0; i < width; ++i) {
        const auto v = static_cast<double>(rows[t * width + i]);
        const double product = element(format, row, i) * v;
        sum += product;
        sizes += std::fabs(product);
        slack += element_slack(format, row, i) * std::fabs(v);
      }
      c.expected.push_back(sum);
      c.allowed.push_back((roundings / (1 - roundings) + 2 * unit_of(precision)) * sizes + slack);
    }
  return c;
}

// Rows of whole numbers, none of them 0, and small enough that a sum of 2^14 products is a whole
// f32: any order of sums gives the same bits, and a column that is lost shows.
std::vector<uint8_t> whole_rows(uint32_t id, uint64_t k, uint64_t rows, std::mt19937& random) {
  const conformance::format& f = format_of(id);
  std::vector<uint8_t> out(row_bytes(id, k) * rows);
  const auto small = [&] {
    const int n = static_cast<int>(random() % 6) - 3;
    return n < 0 ? n : n + 1;
  };
  constexpr uint16_t one = 0x3c00;  // as a half
  for (uint64_t at = 0; at < out.size(); at += f.block_bytes) {
    uint8_t* block = &out[at];
    const auto value = static_cast<float>(small());
    const uint16_t half = float_to_half(value);
    switch (id) {
      case BITNET_FORMAT_F32:
        std::memcpy(block, &value, 4);
        break;
      case BITNET_FORMAT_BF16:
        std::memcpy(block, reinterpret_cast<const uint8_t*>(&value) + 2, 2);
        break;
      case BITNET_FORMAT_F16:
        std::memcpy(block, &half, 2);
        break;
      case BITNET_FORMAT_Q8_0:
        std::memcpy(block, &one, 2);
        for (int i = 2; i < 34; ++i) block[i] = static_cast<uint8_t>(static_cast<int8_t>(small()));
        break;
      case BITNET_FORMAT_Q4_0:
        std::memcpy(block, &one, 2);
        for (int i = 2; i < 18; ++i)
          block[i] = static_cast<uint8_t>((small() + 8) | (small() + 8) << 4);
        break;
      case BITNET_FORMAT_Q4_K:  // scale 1 or 2 times a code of 1 ... 15, less a minimum of 0
        std::memcpy(block, &one, 2);
        std::memcpy(block + 2, &one, 2);
        for (int j = 0; j < 4; ++j) {
          block[4 + j] = static_cast<uint8_t>(1 + random() % 2);
          block[12 + j] = static_cast<uint8_t>(1 + random() % 2);
        }
        for (int i = 16; i < 144; ++i)
          block[i] = static_cast<uint8_t>((1 + random() % 15) | (1 + random() % 15) << 4);
        break;
      case BITNET_FORMAT_Q6_K:  // scale 1 or -2 times a code of 1 ... 15 less 32
        for (int i = 0; i < 128; ++i)
          block[i] = static_cast<uint8_t>((1 + random() % 15) | (1 + random() % 15) << 4);
        for (int i = 192; i < 208; ++i)
          block[i] = static_cast<uint8_t>(static_cast<int8_t>(random() % 2 == 0 ? 1 : -2));
        std::memcpy(block + 208, &one, 2);
        break;
      default:
        throw std::runtime_error("linear_dense has no exact values of the format " +
                                 format_name(id));
    }
  }
  return out;
}

op_case dense_size(uint32_t format, int64_t k, int64_t m, uint64_t tokens, std::string why) {
  op_case c;
  c.op = BITNET_OP_LINEAR_DENSE;
  c.format = format;
  c.why = std::move(why);
  std::mt19937 random(format * 7919 + static_cast<uint32_t>(k));
  const auto width = static_cast<uint64_t>(k), n_rows = static_cast<uint64_t>(m);
  const uint64_t patterns = std::min(n_rows, pattern_count), inputs = std::min(tokens, input_count);
  std::vector<float> rows(width * inputs);
  for (float& x : rows)
    x = static_cast<float>(1 + random() % 8) * (random() % 2 == 0 ? 1.0f : -1.0f);
  const uint32_t x = input_rows(c.graph, k, rows);
  const uint32_t y = c.graph.value(BITNET_DTYPE_F32, BITNET_DIM_TOKENS, m);
  const std::vector<uint8_t> first = whole_rows(format, width, patterns, random);
  const uint64_t bytes = row_bytes(format, width);
  const uint32_t w = c.graph.tensor(format, k, m, repeated(first, bytes, n_rows));
  c.graph.tensors[w].desc.rank = 2;
  c.graph.op(BITNET_OP_LINEAR_DENSE, {x}, {y}, {w});
  output_rows(c.graph, y);
  repeated_rows(c, tokens, inputs);
  std::vector<double> answers(inputs * patterns);
  for (uint64_t p = 0; p < patterns; ++p)
    for (uint64_t i = 0; i < width; ++i) {
      const double v = element(format, &first[p * bytes], i);
      for (uint64_t d = 0; d < inputs; ++d)
        answers[d * patterns + p] += v * static_cast<double>(rows[d * width + i]);
    }
  c.expected.reserve(tokens * n_rows);
  for (const int32_t d : c.tokens)
    for (uint64_t r = 0; r < n_rows; ++r)
      c.expected.push_back(answers[static_cast<uint64_t>(d) * patterns + pattern_at(r, patterns)]);
  c.allowed.assign(c.expected.size(), 0);
  return c;
}

}  // namespace

size_cases linear_dense_sizes() {
  size_cases out;
  for (const format& f : all_formats()) {
    if (f.id == BITNET_FORMAT_TERNARY2) continue;
    const int64_t narrow = f.block == 256 ? 256 : 64, odd = f.block == 1 ? 1 : f.block;
    const struct {
      const char* name;
      int64_t k, m;
      uint64_t tokens;
      const char* why;
    } rows[] = {
        {"128256_rows", narrow, 128256, 1, "a head of BitNet b1.58 2B, narrowed"},
        {"128257_rows", narrow, 128257, 2, "an odd one, two tokens"},
        {"1031x2560", 2560, 1031, 2, "its width"},
        {"301x6912", 6912, 301, 1, "its feed-forward width"},
        {"67x7168", 7168, 67, 3, "wider"},
        {"2049_rows_130_tokens", narrow, 2049, 130, "many rows, many tokens"},
        {"33_rows_512_tokens", narrow, 33, 512, "a long prompt"},
        {"18_rows_513_tokens", narrow + odd, 18, 513, "one past a long prompt"},
    };
    for (const auto& row : rows)
      out.push_back({BITNET_OP_LINEAR_DENSE, f.id, row.name, [row, id = f.id] {
                       return dense_size(id, row.k, row.m, row.tokens, row.why);
                     }});
  }
  return out;
}

op_cases rounded_dense_cases(uint32_t format, uint32_t precision) {
  const auto block = static_cast<int64_t>(format_of(format).block);
  op_cases out;
  out.push_back(dense_case(format, 512, 33, 16, "a tile of tokens", precision));
  out.push_back(dense_case(format, 1280, 150, 70, "many tokens", precision));
  out.push_back(dense_case(format, 256, 20, 1, "one token", precision));
  if (block == 1) out.push_back(dense_case(format, 77, 17, 19, "an odd width", precision));
  return out;
}

op_cases linear_dense_cases() {
  op_cases out;
  for (const format& f : all_formats()) {
    if (f.id == BITNET_FORMAT_TERNARY2) continue;
    const int64_t block = f.block;
    out.push_back(dense_case(f.id, block, 3, 2, "one block"));
    out.push_back(dense_case(f.id, 512, 33, 5, "rows that are no multiple of a tile"));
    out.push_back(dense_case(f.id, 1280, 20, 1, "one token"));
    out.push_back(dense_case(f.id, block, 70, 6, "one block, many rows"));
    out.push_back(dense_case(f.id, (257 / block + 1) * block, 9, 6, "more than 256 elements"));
    if (block == 1) {
      out.push_back(dense_case(f.id, 77, 17, 3, "an odd width"));
      out.push_back(dense_case(f.id, 130, 1, 16, "one row"));
    }
    if (block == 32) out.push_back(dense_case(f.id, 96, 17, 3, "three blocks"));
  }
  return out;
}

}  // namespace bitnet::conformance
