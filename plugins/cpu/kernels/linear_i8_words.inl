// The sums of linear_i8.hpp where int16 products are added in pairs: the one text behind the forms,
// which include it inside their anonymous namespace. Before that a form defines
//   wide           a register of int32;  `lanes` how many
//   wide madd(const uint8_t* w, const int16_t* x)   2 * lanes products of w - 128 and x, in pairs
// Kernels only, no shared inline functions.

// A row of 8192 is shared by 8 lanes or more: 1024 * 127 * 16256 is less than 2^31.
constexpr uint64_t parts = lanes < 8 ? 8 / lanes : 1;

inline int64_t total(wide sums) {
  int64_t sum = 0;
  for (uint64_t i = 0; i < lanes; ++i) sum += sums[i];
  return sum;
}

template <int Rows>
void tile(const i8_tile& a, uint64_t r) {
  wide sums[Rows][parts];
  for (int i = 0; i < Rows; ++i)
    for (uint64_t p = 0; p < parts; ++p) sums[i][p] = wide{};
  const uint8_t* w = a.w + r * a.w_stride;
  for (uint64_t k = 0; k < a.k; k += 2 * lanes * parts)
    for (int i = 0; i < Rows; ++i)
      for (uint64_t p = 0; p < parts; ++p) {
        const uint64_t at = k + 2 * lanes * p;
        sums[i][p] += madd(w + static_cast<uint64_t>(i) * a.w_stride + at, a.x + at);
      }
  for (int i = 0; i < Rows; ++i) {
    int64_t sum = 0;
    for (uint64_t p = 0; p < parts; ++p) sum += total(sums[i][p]);
    a.sums[r + static_cast<uint64_t>(i)] = sum;
  }
}

using octets = uint8_t __attribute__((vector_size(16)));

// The same for codes of 4 bits, made those of int8 first.
template <int Rows>
void tile_i4(const i8_tile& a, uint64_t r) {
  wide sums[Rows][parts];
  for (int i = 0; i < Rows; ++i)
    for (uint64_t p = 0; p < parts; ++p) sums[i][p] = wide{};
  const uint8_t* w = a.w + r * a.w_stride;
  for (uint64_t k = 0; k < a.k; k += 128)
    for (int i = 0; i < Rows; ++i) {
      const uint8_t* from = w + static_cast<uint64_t>(i) * a.w_stride + k / 2;
      octets codes[8];
      for (uint64_t at = 0; at < 4; ++at) {
        constexpr uint8_t low_half = 15, recentred = 128 - 8;
        octets pairs;
        __builtin_memcpy(&pairs, from + 16 * at, sizeof pairs);
        codes[at] = (pairs & low_half) + recentred;
        codes[at + 4] = (pairs >> 4) + recentred;
      }
      const auto* bytes = reinterpret_cast<const uint8_t*>(codes);
      for (uint64_t at = 0; at < 128; at += 2 * lanes * parts)
        for (uint64_t p = 0; p < parts; ++p)
          sums[i][p] += madd(bytes + at + 2 * lanes * p, a.x + k + at + 2 * lanes * p);
    }
  for (int i = 0; i < Rows; ++i) {
    int64_t sum = 0;
    for (uint64_t p = 0; p < parts; ++p) sum += total(sums[i][p]);
    a.sums[r + static_cast<uint64_t>(i)] = sum;
  }
}

inline void all_i4(const i8_tile& a) {
  uint64_t r = 0;
  for (; r + 2 <= a.rows; r += 2) tile_i4<2>(a, r);
  for (; r < a.rows; ++r) tile_i4<1>(a, r);
}

inline void all(const i8_tile& a) {
  uint64_t r = 0;
  for (; r + 4 <= a.rows; r += 4) tile<4>(a, r);
  for (; r < a.rows; ++r) tile<1>(a, r);
}
