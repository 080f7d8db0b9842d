// Sizes of the formats of linear_dense.hpp, in the namespace of the form that includes it.
//
// Expects  BITNET_FORMAT_* of bitnet/abi/tensor.h.
// Gives    `element_bytes`, `in_blocks`.
// Used by  linear_dense_avx*.cpp, linear_dense_vector.inl.

// Bytes of an element of a format without blocks.
constexpr uint64_t element_bytes(uint32_t format) {
  return format == BITNET_FORMAT_F32 ? 4 : 2;
}
// True if a row consists of blocks of 32 elements.
constexpr bool in_blocks(uint32_t format) {
  return format == BITNET_FORMAT_Q8_0 || format == BITNET_FORMAT_Q4_0;
}
