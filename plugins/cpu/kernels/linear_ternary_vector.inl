// The sums of linear_ternary.hpp for a machine with vectors: the shared text of the forms, which
// include it inside their anonymous namespace. Kernels only, no shared inline functions.
//
// Expects
//   width          bytes in a register: 16, 32 or 64
//   vec            a register of bytes
//   part           the accumulator of products, zero when value-initialised
//   run            units of 32 bytes of codes (of 64 if width is 64) that a part has room for, even
//                  if codes break the format: 3 * -128 in each product
//   wide           a register of int32
//   vec load(const void*)
//   vec activations(const int8_t* q)        the activations of one plane: 32 of a group, for a
//                                           width of 64 those of the next group after them; for 16
//                                           half
//   part dot(part, vec codes, vec q)        the part and the products
//   wide widen(part), int32_t total(wide)
// Gives    `multiply_tile`: a tile of linear_ternary.hpp.
// Used by  linear_ternary_*.cpp, except those of AVX-512 VNNI and scalar code.

#include "prefetch.inl"

constexpr uint64_t unit = width > 32 ? width : 32;  // bytes of codes: whole groups of 128 elements

using words = uint16_t __attribute__((vector_size(width)));

template <int Rows, int Tokens>
inline void add_unit(const uint8_t* w, uint64_t stride, const int8_t* const* q,
                     part (&sums)[Rows][Tokens]) {
  for (uint64_t h = 0; h < unit; h += width)
    for (int r = 0; r < Rows; ++r) {
      auto codes = reinterpret_cast<words>(load(w + static_cast<uint64_t>(r) * stride + h));
      for (uint64_t plane = 4; plane-- > 0; codes >>= 2)
        for (int t = 0; t < Tokens; ++t)
          sums[r][t] = dot(sums[r][t], reinterpret_cast<vec>(codes & 0x0303),
                           activations(q[t] + 32 * plane + h));
    }
}

struct prepared {
  const int8_t* q[8];
  int8_t tail[8][4 * unit];  // the rest of a token after whole units, then zeros
  int32_t sum[8];
};

template <int Rows, int Tokens>
void tile(const ternary_tile& a, const prepared& x, uint64_t r, uint64_t t, paced_prefetch& next) {
  wide sums[Rows][Tokens];
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Tokens; ++j) sums[i][j] = wide{};
  const uint8_t* w = a.w + r * a.w_stride;
  const int8_t* q[Tokens];
  for (int j = 0; j < Tokens; ++j) q[j] = x.q[j];
  const uint64_t rest = a.k % (4 * unit);
  for (uint64_t left = a.k / (4 * unit), n; left != 0 || rest != 0; left -= n) {
    part parts[Rows][Tokens];
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Tokens; ++j) parts[i][j] = part{};
    n = left < run ? left : run;
    for (uint64_t u = 0; u < n; ++u, w += unit) {
      next.count(Rows * unit);
      add_unit<Rows, Tokens>(w, a.w_stride, q, parts);
      for (int j = 0; j < Tokens; ++j) q[j] += 4 * unit;
    }
    if (n == 0) {  // a part of a unit: codes of zeros, and activations of zeros, after it
      uint8_t codes[Rows][unit] = {};
      for (int i = 0; i < Rows; ++i)
        std::memcpy(codes[i], w + static_cast<uint64_t>(i) * a.w_stride, (rest + 127) / 128 * 32);
      for (int j = 0; j < Tokens; ++j) q[j] = x.tail[j];
      add_unit<Rows, Tokens>(codes[0], unit, q, parts);
    }
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Tokens; ++j) sums[i][j] += widen(parts[i][j]);
    if (n == 0) break;
  }
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Tokens; ++j)
      a.sums[(t + static_cast<uint64_t>(j)) * a.sums_stride + r + static_cast<uint64_t>(i)] =
          total(sums[i][j]) - x.sum[j];
}

// A row with a single token: each plane has its own part, so that none waits for the one before.
inline void add_unit(const uint8_t* w, const int8_t* q, part (&sums)[4]) {
  for (uint64_t h = 0; h < unit; h += width) {
    auto codes = reinterpret_cast<words>(load(w + h));
    for (uint64_t plane = 4; plane-- > 0; codes >>= 2)
      sums[plane] = dot(sums[plane], reinterpret_cast<vec>(codes & 0x0303),
                        activations(q + 32 * plane + h));
  }
}

// One row after the other, so that the weights are one stream of memory.
inline void row(const ternary_tile& a, const prepared& x, uint64_t r, uint64_t t) {
  const uint8_t* const w = a.w + r * a.w_stride;
  const uint64_t units = a.k / (4 * unit), rest = a.k % (4 * unit);
  wide sums{};
  for (uint64_t u = 0; u < units;) {
    part parts[4] = {};
    for (const uint64_t end = units - u < run ? units : u + run; u < end; ++u) {
      prefetch_step<1, unit>(w, u, a.ahead);
      add_unit(w + u * unit, x.q[0] + u * 4 * unit, parts);
    }
    for (const part& p : parts) sums += widen(p);
  }
  if (rest != 0) {
    uint8_t codes[unit] = {};
    std::memcpy(codes, w + units * unit, (rest + 127) / 128 * 32);
    part parts[4] = {};
    add_unit(codes, x.tail[0], parts);
    for (const part& p : parts) sums += widen(p);
  }
  a.sums[t * a.sums_stride + r] = total(sums) - x.sum[0];
}

// Sums units of activations as products with codes of 1. A run has room for these, too.
inline wide sum_units(const int8_t* q, uint64_t units) {
  wide sum{};
  for (uint64_t n; units != 0; units -= n) {
    part p{};
    n = units < run ? units : run;
    for (uint64_t u = 0; u < n; ++u, q += 4 * unit)
      for (uint64_t i = 0; i < 4 * unit; i += width)
        p = dot(p, reinterpret_cast<vec>(words{} + 0x0101), load(q + i));
    sum += widen(p);
  }
  return sum;
}

template <int Rows, int Tokens>
void tokens(const ternary_tile& a, uint64_t t, uint64_t pass, uint64_t passes) {
  paced_prefetch next(a.w + a.rows * a.w_stride, a.rows * a.w_stride, pass, passes);
  prepared x;
  for (int j = 0; j < Tokens; ++j) {
    const int8_t* q = a.q + (t + static_cast<uint64_t>(j)) * a.q_stride;
    const uint64_t whole = a.k / (4 * unit) * (4 * unit);
    x.q[j] = q;
    std::memset(x.tail[j], 0, sizeof x.tail[j]);
    std::memcpy(x.tail[j], q + whole, a.k - whole);
    x.sum[j] = total(sum_units(q, a.k / (4 * unit)) + sum_units(x.tail[j], 1));
  }
  uint64_t r = 0;
  if constexpr (Tokens > 1)
    for (; r + Rows <= a.rows; r += Rows) tile<Rows, Tokens>(a, x, r, t, next);
  for (; r < a.rows; ++r)
    if constexpr (Tokens > 1)
      tile<1, Tokens>(a, x, r, t, next);
    else
      row(a, x, r, t);
}

// n tokens from t on, at most Most.
template <int Rows, int Most>
void some_tokens(const ternary_tile& a, uint64_t t, uint64_t n, uint64_t pass, uint64_t passes) {
  if constexpr (Most > 1)
    if (n < Most) return some_tokens<Rows, Most - 1>(a, t, n, pass, passes);
  tokens<Rows, Most>(a, t, pass, passes);
}

// Rows by Tokens: a tile that fits the registers. Passes have nearly the same number of tokens,
// since a pass with a single token would unpack all codes for it alone.
template <int Rows, int Tokens>
void multiply_tile(const ternary_tile& a) {
  const uint64_t passes = (a.tokens + Tokens - 1) / Tokens;
  for (uint64_t pass = 0; pass < passes; ++pass) {
    const uint64_t first = a.tokens * pass / passes, last = a.tokens * (pass + 1) / passes;
    some_tokens<Rows, Tokens>(a, first, last - first, pass, passes);
  }
}
