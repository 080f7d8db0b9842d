// Elements of rows as floats, in the namespace of the form that includes it.
//
// Expects  BITNET_LANES, floats in a vector register; BITNET_CONVERSIONS, the file with
//          from_bytes() and from_halves(); <cstring>, and what that file expects.
// Gives    `lanes`; the vector types `floats`, `words`, `integers`, `halves`, `bytes` and `octets`;
//          `load`, `decode`.
// Used by  attn_scores_vector.inl, linear_dense_vector.inl.

constexpr uint64_t lanes = BITNET_LANES;
using floats = float __attribute__((vector_size(4 * lanes)));
using words = uint32_t __attribute__((vector_size(4 * lanes)));
using integers = int32_t __attribute__((vector_size(4 * lanes)));
using halves = uint16_t __attribute__((vector_size(2 * lanes)));
using bytes = int8_t __attribute__((vector_size(lanes)));
using octets = uint8_t __attribute__((vector_size(lanes)));

#include BITNET_CONVERSIONS

template <class T>
inline T load(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// The elements from i on, as many as there are lanes (at most 16); i is a multiple of that number.
template <uint32_t Format>
inline floats decode(const uint8_t* row, uint64_t i) {
  if constexpr (Format == BITNET_FORMAT_Q8_0) {
    const uint8_t* block = row + i / 32 * 34;
    const halves d = halves{} + load<uint16_t>(block);
    return from_halves(d) * from_bytes(load<bytes>(block + 2 + i % 32));
  } else if constexpr (Format == BITNET_FORMAT_Q4_0) {
    const uint8_t* block = row + i / 32 * 18;
    const halves d = halves{} + load<uint16_t>(block);
    const octets pairs = load<octets>(block + 2 + i % 16);
    const octets codes = i % 32 < 16 ? pairs & 15 : pairs >> 4;
    return from_halves(d) * (from_bytes(reinterpret_cast<bytes>(codes)) - 8.0f);
  } else if constexpr (Format == BITNET_FORMAT_F32) {
    return load<floats>(row + 4 * i);
  } else if constexpr (Format == BITNET_FORMAT_F16) {
    return from_halves(load<halves>(row + 2 * i));
  } else {
    return reinterpret_cast<floats>(__builtin_convertvector(load<halves>(row + 2 * i), words)
                                    << 16);
  }
}
