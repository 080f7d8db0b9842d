// LINEAR_DENSE. Rows of K and 4-bit formats are decoded first; with many tokens, f16 as well; long
// rows in parts. The sums keep their order, so the bits are those of the scalar form.

#include <algorithm>
#include <string_view>

#include "ops.hpp"

namespace bitnet::cpu {
namespace {

bool is_direct(uint32_t format) {  // formats that isa_form::dense reads
  return format == BITNET_FORMAT_F32 || format == BITNET_FORMAT_F16 ||
         format == BITNET_FORMAT_BF16 || format == BITNET_FORMAT_Q8_0;
}

// Fewest tokens for which f16 is widened once, not for every few tokens. Measured in November 2026
// on an AMD EPYC (docs/explain/kernel-ladder.md). With AVX2 widening again is cheaper than reading
// widened rows; NEON does not widen once either.
uint64_t fewest_to_widen(const isa_form& isa) {
  const std::string_view form = isa.dense.isa;
  return form == "avx512" ? 16 : form == "sse41" ? 4 : UINT64_MAX;
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

// The sizes of dense_room. Decoded rows take 64 KiB, so that they stay in the second-level cache
// while the tokens pass. `chunk`: elements of a row, a multiple of every block and of n_partials.
constexpr uint64_t chunk = 4096, tile_rows = 4;
// Tokens for which a decoded chunk of a long row is read, with 16 KiB of partial sums.
constexpr uint64_t tile_tokens = 64;
constexpr uint64_t n_partials = 16;  // of a dot product, linear_dense.hpp

struct dense_room {
  float decoded[tile_rows * chunk];
  float partials[tile_tokens * tile_rows * n_partials];
};
static_assert(sizeof(dense_room) == dense_room_bytes);

float total(float* p) {
  for (uint64_t half = n_partials / 2; half > 0; half /= 2)
    for (uint64_t j = 0; j < half; ++j) p[j] += p[j + half];
  return p[0];
}

// n rows longer than a chunk: each chunk is multiplied by as many tokens as there are partial sums
// for.
void multiply_long(const isa_form& isa, const sdk::weight& w, const float* x, uint64_t rows,
                   uint64_t r, uint64_t n, dense_room& room, float* y) {
  float *const decoded = room.decoded, *const partials = room.partials;
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

void linear_dense(const isa_form& isa, const sdk::weight& w, const float* x,
                  const output_columns& columns, void* room) {
  const auto [tokens, first, last, y] = columns;
  auto& parts = *static_cast<dense_room*>(room);
  float* const decoded = parts.decoded;
  const bool direct =
      w.format == BITNET_FORMAT_F16 ? tokens < fewest_to_widen(isa) : is_direct(w.format);
  for (uint64_t r = first; r < last; r += tile_rows) {
    const uint64_t n = std::min(tile_rows, last - r);
    if (!direct && w.k > chunk) {
      multiply_long(isa, w, x, tokens, r, n, parts, y);
      continue;
    }
    dense_tile tile{w.format, w.row(r), w.row_bytes, x, w.k, y + r, w.m, w.k, n, tokens};
    if (!direct) {
      for (uint64_t i = 0; i < n; ++i) decode_row(isa, w, r + i, decoded + i * w.k);
      tile.format = BITNET_FORMAT_F32;
      tile.w = reinterpret_cast<const uint8_t*>(decoded);
      tile.w_stride = w.k * sizeof(float);
    }
    if (r + 2 * tile_rows <= last) {
      tile.later = w.row(r + tile_rows);
      tile.later_row_bytes = w.row_bytes;
    }
    isa.dense(tile);
  }
}

}  // namespace bitnet::cpu
