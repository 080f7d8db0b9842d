// How rows of the formats of linear_dense.hpp are laid out, in the namespace of the form that
// includes it.
//
// Expects  BITNET_FORMAT_* of bitnet/abi/tensor.h.
// Gives    `element_bytes`, `in_blocks`.

// Of a format that has no blocks.
constexpr uint64_t element_bytes(uint32_t format) {
  return format == BITNET_FORMAT_F32 ? 4 : 2;
}
// Whether a row is whole blocks of 32 elements.
constexpr bool in_blocks(uint32_t format) {
  return format == BITNET_FORMAT_Q8_0 || format == BITNET_FORMAT_Q4_0;
}
