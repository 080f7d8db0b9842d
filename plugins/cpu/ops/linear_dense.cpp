// LINEAR_DENSE: rows of K and 4-bit formats are decoded first, long ones in parts; the sums have
// the same order, so the bits are those of the scalar form.

#include <algorithm>

#include "ops.hpp"

namespace bitnet::cpu {
namespace {

bool is_direct(uint32_t format) {  // what isa_form::dense reads
  return format == BITNET_FORMAT_F32 || format == BITNET_FORMAT_F16 ||
         format == BITNET_FORMAT_BF16 || format == BITNET_FORMAT_Q8_0;
}

// y (k) = whole blocks of a row.
void decode_part(const isa_form& isa, uint32_t format, const uint8_t* from, uint64_t k, float* y) {
  switch (format) {
    case BITNET_FORMAT_F16:
      return isa.rows.widen(from, k, y);
    case BITNET_FORMAT_Q4_0:
      return isa.rows.from_q4_0(from, k, y);
    case BITNET_FORMAT_Q4_K:
      return isa.rows.from_q4_k(from, k, y);
    case BITNET_FORMAT_Q6_K:
      return isa.rows.from_q6_k(from, k, y);
    default:
      return sdk::decode(format, from, 0, k, y);
  }
}

}  // namespace

void decode_row(const isa_form& isa, const sdk::weight& w, uint64_t row, float* y) {
  decode_part(isa, w.format, w.row(row), w.k, y);
}

namespace {

constexpr uint64_t chunk = 4096;   // elements of a row that are decoded at a time
constexpr uint64_t tile_rows = 4;  // 64 KB on the stack
constexpr uint64_t tile_tokens = 64;
constexpr uint64_t n_partials = 16;  // of a dot product, linear_dense.hpp

float total(float* p) {
  for (uint64_t half = n_partials / 2; half > 0; half /= 2)
    for (uint64_t j = 0; j < half; ++j) p[j] += p[j + half];
  return p[0];
}

// Rows that are longer than a chunk, n of them: each chunk is multiplied with as many tokens as
// there are partial sums for.
void multiply_long(const isa_form& isa, const sdk::weight& w, const float* x, uint64_t rows,
                   uint64_t r, uint64_t n, float* decoded, float* y) {
  float partials[tile_tokens * tile_rows * n_partials];
  const sdk::format& f = *sdk::find_format(w.format);
  for (uint64_t t = 0; t < rows; t += tile_tokens) {
    const uint64_t tokens = std::min(tile_tokens, rows - t);
    std::fill_n(partials, tokens * n * n_partials, 0.0f);
    for (uint64_t at = 0; at < w.k; at += chunk) {
      const uint64_t k = std::min(chunk, w.k - at);
      for (uint64_t i = 0; i < n; ++i)
        decode_part(isa, w.format, w.row(r + i) + sdk::row_bytes(f, at), k, decoded + i * chunk);
      isa.dense({BITNET_FORMAT_F32, reinterpret_cast<const uint8_t*>(decoded),
                 chunk * sizeof(float), x + t * w.k + at, w.k, nullptr, 0, k, n, tokens, nullptr,
                 partials});
    }
    for (uint64_t i = 0; i < tokens; ++i)
      for (uint64_t j = 0; j < n; ++j)
        y[(t + i) * w.m + r + j] = total(partials + (i * n + j) * n_partials);
  }
}

}  // namespace

void linear_dense(const isa_form& isa, const sdk::weight& w, const float* x, uint64_t rows,
                  uint64_t first, uint64_t last, float* y) {
  if (is_direct(w.format)) {
    constexpr uint64_t together = 16;  // rows stay in the first cache while the tokens pass by
    for (uint64_t r = first; r < last; r += together)
      isa.dense({w.format, w.row(r), w.row_bytes, x, w.k, y + r, w.m, w.k,
                 std::min(together, last - r), rows});
    return;
  }
  float decoded[tile_rows * chunk];
  for (uint64_t r = first; r < last; r += tile_rows) {
    const uint64_t n = std::min(tile_rows, last - r);
    if (w.k > chunk) {
      multiply_long(isa, w, x, rows, r, n, decoded, y);
      continue;
    }
    for (uint64_t i = 0; i < n; ++i) decode_row(isa, w, r + i, decoded + i * w.k);
    isa.dense({BITNET_FORMAT_F32, reinterpret_cast<const uint8_t*>(decoded), w.k * sizeof(float), x,
               w.k, y + r, w.m, w.k, n, rows});
  }
}

}  // namespace bitnet::cpu
