// Programs of weights whose formats have blocks: embeddings, and products as in a head.

#include "probe/golden_builder.hpp"
#include "probe/golden_programs.hpp"

namespace bitnet::probe::golden {
namespace {

// Rows of two blocks of the largest formats.
constexpr uint32_t block_width = 512, n_block_rows = 44;

template <element Number>
double number(uint32_t row, uint32_t k) {
  return Number(row, k);
}

template <element Number>
golden_program embedding(const char* name, uint32_t format) {
  builder b(name, Number, golden_tokens, block_width, format);
  return b.gathered(b.x, block_width, {BITNET_OP_EMBED_GATHER}, number<Number>);
}

template <element Number>
golden_program dense_product(const char* name, uint32_t format) {
  builder b(name, activation, golden_tokens, block_width);
  const uint32_t y = b.value(n_block_rows);
  b.emit(BITNET_OP_LINEAR_DENSE, {b.x}, {y}, {b.matrix(format, block_width, n_block_rows, Number)});
  return b.gathered(y, n_block_rows, {BITNET_OP_LINEAR_DENSE},
                    product<activation, Number, block_width>);
}

}  // namespace

void add_formats_with_blocks(std::vector<golden_program>& out) {
  out.push_back(embedding<number_of_q8_0>("embed_gather.q8_0", BITNET_FORMAT_Q8_0));
  out.push_back(embedding<number_of_q4_0>("embed_gather.q4_0", BITNET_FORMAT_Q4_0));
  out.push_back(embedding<number_of_q4_k>("embed_gather.q4_k", BITNET_FORMAT_Q4_K));
  out.push_back(embedding<number_of_q6_k>("embed_gather.q6_k", BITNET_FORMAT_Q6_K));
  out.push_back(dense_product<number_of_q8_0>("linear_dense.q8_0", BITNET_FORMAT_Q8_0));
  out.push_back(dense_product<number_of_q4_0>("linear_dense.q4_0", BITNET_FORMAT_Q4_0));
  out.push_back(dense_product<number_of_q4_k>("linear_dense.q4_k", BITNET_FORMAT_Q4_K));
  out.push_back(dense_product<number_of_q6_k>("linear_dense.q6_k", BITNET_FORMAT_Q6_K));
}

}  // namespace bitnet::probe::golden
