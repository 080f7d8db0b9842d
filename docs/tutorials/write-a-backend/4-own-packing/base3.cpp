// SPDX-License-Identifier: Apache-2.0
#include "base3.hpp"

#include <algorithm>
#include <array>

namespace sketch {

using bitnet::sdk::call;
using bitnet::sdk::share;
using bitnet::sdk::weight;

constexpr uint64_t per_byte = 5;  // 3^5 = 243 fits, 3^6 does not

// The digits of each byte, the lowest first, less one.
constexpr auto digits = [] {
  std::array<std::array<int8_t, per_byte>, 243> out{};
  for (uint32_t byte = 0; byte < out.size(); ++byte)
    for (uint32_t i = 0, rest = byte; i < per_byte; ++i, rest /= 3)
      out[byte][i] = static_cast<int8_t>(static_cast<int32_t>(rest % 3) - 1);
  return out;
}();

static uint64_t row_bytes(const weight& w) noexcept {
  return (w.k + per_byte - 1) / per_byte;
}

static uint64_t bytes(const weight& w) {
  return w.m * row_bytes(w);
}

static void pack(const weight& w, const void*, uint64_t first, uint64_t last,
                 uint8_t* out) noexcept {
  for (uint64_t m = first; m < last; ++m) {
    uint32_t power = 1;
    for (uint64_t k = 0; k < w.k; ++k) {
      // A broken file may hold code 3; expand() has no byte for it.
      const auto digit =
          static_cast<uint32_t>(std::min(bitnet::sdk::ternary_at(w.row(m), k), 1) + 1);
      uint8_t& byte = out[m * row_bytes(w) + k / per_byte];
      byte = static_cast<uint8_t>(byte + digit * power);
      power = (k + 1) % per_byte == 0 ? 1 : power * 3;
    }
  }
}

bitnet::sdk::packing base3() {
  return {"sketch/base3-rows/1", bytes, pack, /*drops_rows=*/true};
}

// Elements [first, first + n) of a row as -1, 0 and 1; first is a multiple of five, and up to four
// elements more are written.
static void expand(const weight& w, uint64_t m, uint64_t first, uint64_t n, int8_t* out) noexcept {
  const uint8_t* row = w.packed_data() + m * row_bytes(w);
  for (uint64_t k = 0; k < n; k += per_byte)
    std::copy_n(digits[row[(first + k) / per_byte]].begin(), per_byte, out + k);
}

constexpr uint64_t piece = 640;

void linear_ternary_base3(const call& c, const share& s) noexcept {
  constexpr uint64_t tile = 16;  // tokens for which a row is expanded once
  const weight& w = *c.w;
  const bool grouped = w.scale_group != 0;
  const uint64_t group = grouped ? w.scale_group : w.k;
  int8_t codes[piece];
  for (uint64_t t0 = 0; t0 < c.rows; t0 += tile) {
    const uint64_t tokens = std::min(tile, c.rows - t0);
    for (uint64_t m = s.first; m < s.last; ++m) {
      int32_t sum[tile] = {};  // exact, whatever the order
      float scaled[tile] = {};
      for (uint64_t k = 0; k < w.k;) {
        const uint64_t at = k % piece;
        if (at == 0) expand(w, m, k, std::min(piece, w.k - k), codes);
        const uint64_t n = std::min({piece - at, group - k % group, w.k - k});
        for (uint64_t t = 0; t < tokens; ++t) {
          const int8_t* q = c.input<int8_t>(0) + (t0 + t) * w.k + k;
          for (uint64_t i = 0; i < n; ++i) sum[t] += int32_t{codes[at + i]} * int32_t{q[i]};
        }
        k += n;
        if (!grouped || k % group != 0) continue;
        for (uint64_t t = 0; t < tokens; ++t) {
          scaled[t] += static_cast<float>(sum[t]) * w.scales[(m * w.k + k - 1) / group];
          sum[t] = 0;
        }
      }
      for (uint64_t t = 0; t < tokens; ++t) {
        const float act_scale = c.input<float>(1)[t0 + t];
        c.output<float>(0)[(t0 + t) * w.m + m] =
            grouped ? scaled[t] / act_scale : static_cast<float>(sum[t]) / act_scale * w.scales[0];
      }
    }
  }
}

void embed_gather_base3(const call& c, const share& s) noexcept {
  const weight& w = *c.w;
  int8_t codes[piece];
  for (uint64_t t = s.first; t < s.last; ++t) {
    const auto token = static_cast<uint64_t>(c.step->tokens[t]);
    for (uint64_t k = 0; k < w.k; ++k) {
      if (k % piece == 0) expand(w, token, k, std::min(piece, w.k - k), codes);
      const uint64_t scale = w.scale_group == 0 ? 0 : (token * w.k + k) / w.scale_group;
      c.output<float>(0)[t * w.k + k] = static_cast<float>(codes[k % piece]) * w.scales[scale];
    }
  }
}

}  // namespace sketch
