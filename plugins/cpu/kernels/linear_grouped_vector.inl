// The products of linear_grouped.hpp for a machine with vectors: the one text behind the forms,
// which include it inside their anonymous namespace. A lane of four bytes is a row: four elements
// of as many rows as there are lanes are multiplied by the same four activations. So no sum has to
// cross lanes, and a group's scales, sums and results are registers of rows as well. Before that a
// form defines
//   lanes          of four bytes in a register: 4, 8 or 16
//   vec            a register of bytes
//   part           what products are added to, zero when value-initialised; it has room for 32
//                  elements of a row, even of codes that break the format: 3 * -128 in each product
//   void transpose(vec (&rows)[lanes])     lane j of register i becomes lane i of register j
//   vec spread(const int8_t* q)            four activations in each lane
//   part dot(part, vec codes, vec q)       the part and the products
//   wide widen(part)                       the sum of each lane
// Kernels only, no shared inline functions.

using bytes = uint8_t __attribute__((vector_size(4 * lanes)));
using words = uint16_t __attribute__((vector_size(4 * lanes)));
using wide = int32_t __attribute__((vector_size(4 * lanes)));
using floats = float __attribute__((vector_size(4 * lanes)));

constexpr uint64_t columns = lanes < 8 ? 8 : lanes;  // of four bytes: whole groups of 128 elements
constexpr uint64_t packed_group = 32;                // bytes

// What is done for a number of rows, whatever the token.
struct row_tile {
  const uint8_t* w[lanes];  // a tile that has fewer rows repeats its last one
  uint64_t rows;
  floats scales[most_groups];
};

template <class T>
inline T load(const void* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// n bytes, then zeros.
template <class T>
inline T load_first(const void* from, uint64_t n) {
  T v{};
  std::memcpy(&v, from, n);
  return v;
}

// The packed groups from byte `at` of each row on, of which there are `left` bytes: column i has
// bytes 4 i to 4 i + 3 of every row.
inline void load_columns(const row_tile& tile, uint64_t at, uint64_t left, vec (&out)[columns]) {
  for (uint64_t h = 0; h < columns; h += lanes) {
    vec v[lanes];
    for (uint64_t i = 0; i < lanes; ++i) {
      const uint8_t* from = tile.w[i] + at + 4 * h;
      if constexpr (4 * columns > packed_group)  // one of two packed groups may be missing
        v[i] = left < 4 * columns ? load_first<vec>(from, packed_group) : load<vec>(from);
      else
        v[i] = load<vec>(from);
    }
    transpose(v);
    for (uint64_t i = 0; i < lanes; ++i) out[h + i] = v[i];
  }
}

inline void load_scales(const grouped_tile& a, uint64_t r, row_tile& tile) {
  for (uint64_t g = 0; g < a.groups; g += lanes) {
    const uint64_t n = a.groups - g < lanes ? a.groups - g : lanes;
    vec v[lanes];
    for (uint64_t i = 0; i < lanes; ++i) {
      const uint64_t row = i < tile.rows ? i : tile.rows - 1;
      const float* from = a.scales + (r + row) * a.scales_stride + g;
      v[i] = n == lanes ? load<vec>(from) : load_first<vec>(from, n * sizeof(float));
    }
    transpose(v);
    for (uint64_t i = 0; i < n; ++i) tile.scales[g + i] = reinterpret_cast<floats>(v[i]);
  }
}

// What a tile of tokens has found so far.
template <int Tokens>
struct progress {
  const int8_t* q[Tokens];
  const int32_t* q_sums[Tokens];  // of each group
  wide sums[Tokens];              // of the group that is being read
  floats y[Tokens];
  uint64_t group = 0, left;  // which one, and runs of 32 elements that are left of it
};

// 32 elements: bits 7:6 of 32 bytes, for Plane 1 the next two bits, ...
template <int Plane, int Tokens>
inline void add_plane(const grouped_tile& a, const row_tile& tile, const vec* column,
                      progress<Tokens>& now) {
  part parts[Tokens];
  for (int t = 0; t < Tokens; ++t) parts[t] = part{};
  for (uint64_t i = 0; i < 8; ++i) {
    const auto shifted = reinterpret_cast<words>(column[i]) >> (6 - 2 * Plane);
    const auto codes = reinterpret_cast<vec>(shifted & 0x0303);
    for (int t = 0; t < Tokens; ++t)
      parts[t] = dot(parts[t], codes, spread(now.q[t] + 4 * i));
  }
  for (int t = 0; t < Tokens; ++t) {
    now.q[t] += 32;
    now.sums[t] += widen(parts[t]);
  }
  if (--now.left != 0) return;
  for (int t = 0; t < Tokens; ++t) {
    const wide sum = now.sums[t] - now.q_sums[t][now.group];
    now.y[t] += __builtin_convertvector(sum, floats) * tile.scales[now.group];
    now.sums[t] = wide{};
  }
  now.left = a.group / 32;
  ++now.group;
}

template <int Tokens>
void multiply(const grouped_tile& a, const row_tile& tile, const int32_t (*q_sums)[most_groups],
              uint64_t r, uint64_t t) {
  progress<Tokens> now;
  now.left = a.group / 32;
  float* y = a.y + t * a.y_stride + r;
  for (int j = 0; j < Tokens; ++j) {
    const auto token = static_cast<uint64_t>(j);
    now.q[j] = a.q + (t + token) * a.q_stride;
    now.q_sums[j] = q_sums[t + token];
    now.sums[j] = wide{};
    now.y[j] = a.goes_on ? load_first<floats>(y + token * a.y_stride, tile.rows * sizeof(float))
                         : floats{};
  }
  const uint64_t row_bytes = (a.groups * a.group + 127) / 128 * packed_group;
  // The same place of the rows that come next; in rows that are long, a later one of the same.
  constexpr uint64_t most_ahead = 32768;
  const uint64_t ahead = lanes * a.w_stride < most_ahead ? lanes * a.w_stride : a.ahead;
  for (uint64_t at = 0; at < row_bytes; at += 4 * columns) {
    if constexpr (Tokens == 1)
      for (uint64_t i = 0; i < lanes; ++i) __builtin_prefetch(tile.w[i] + at + ahead, 0, 2);
    vec column[columns];
    load_columns(tile, at, row_bytes - at, column);
    for (uint64_t h = 0; h < columns && now.group < a.groups; h += 8) {
      add_plane<0>(a, tile, column + h, now);
      if (now.group < a.groups) add_plane<1>(a, tile, column + h, now);
      if (now.group < a.groups) add_plane<2>(a, tile, column + h, now);
      if (now.group < a.groups) add_plane<3>(a, tile, column + h, now);
    }
  }
  for (int j = 0; j < Tokens; ++j)
    std::memcpy(y + static_cast<uint64_t>(j) * a.y_stride, &now.y[j], tile.rows * sizeof(float));
}

// A code is one more than its weight, so the sum of the activations is one too much.
inline void sum_groups(const grouped_tile& a, int32_t (*sums)[most_groups]) {
  for (uint64_t t = 0; t < a.tokens; ++t) {
    const int8_t* q = a.q + t * a.q_stride;
    for (uint64_t g = 0; g < a.groups; ++g) {
      int32_t sum = 0;
      for (uint64_t n = a.group; n != 0; n -= 32, q += 32)
        for (uint64_t i = 0; i < 32; ++i) sum += q[i];
      sums[t][g] = sum;
    }
  }
}

// Tokens that share the columns of a tile of rows: what the registers hold.
template <int Tokens>
void all(const grouped_tile& a) {
  int32_t q_sums[most_grouped_tokens][most_groups];
  sum_groups(a, q_sums);
  row_tile tile;
  for (uint64_t r = 0; r < a.rows; r += lanes) {
    tile.rows = a.rows - r < lanes ? a.rows - r : lanes;
    for (uint64_t i = 0; i < lanes; ++i)
      tile.w[i] = a.w + (r + (i < tile.rows ? i : tile.rows - 1)) * a.w_stride;
    load_scales(a, r, tile);
    uint64_t t = 0;
    for (; t + Tokens <= a.tokens; t += Tokens) multiply<Tokens>(a, tile, q_sums, r, t);
    for (; t < a.tokens; ++t) multiply<1>(a, tile, q_sums, r, t);
  }
}
