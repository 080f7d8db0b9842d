#pragma once
// Builds a golden program, op by op.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "bitnet/abi/tensor.h"
#include "probe/golden.hpp"
#include "probe/golden_formats.hpp"

namespace bitnet::probe::golden {

constexpr int64_t all_tokens = BITNET_DIM_TOKENS;

// What a result of exponentials may be off by, as a share of it. Devices take an exponential of x
// within 3 + 2|x| units in the last place, 2^-23, and round what x is made of: with exponents up to
// 50, as here, less than half of this.
constexpr double allowed_of_exponentials = 0x1p-14;

class builder {
 public:
  builder(std::string name, uint32_t tokens);
  // The program begins with the rows of `input`, one per token.
  builder(std::string name, element input, uint32_t tokens = golden_tokens,
          uint32_t columns = width, uint32_t format = BITNET_FORMAT_F32);

  // More rows, one per token; each number is multiplied by `unit`.
  uint32_t rows_of(element input, uint32_t columns, uint32_t format = BITNET_FORMAT_F32,
                   float unit = 1);

  uint32_t value(int64_t columns, uint32_t dtype = BITNET_DTYPE_F32, int64_t rows = all_tokens) {
    return out_.graph.value(dtype, rows, columns);
  }
  uint32_t matrix(uint32_t format, uint32_t columns, uint32_t rows, element at, uint32_t rank = 2,
                  float unit = 1);
  // `factors` of groups of elements, along rows; none: one factor, 1.
  uint32_t ternary(uint32_t columns, uint32_t rows, element at, uint32_t group = 0,
                   std::vector<float> factors = {});
  bitnet_op& emit(uint32_t id, std::initializer_list<uint32_t> in,
                  std::initializer_list<uint32_t> out,
                  std::initializer_list<uint32_t> weights = {}) {
    return out_.graph.emit(id, in, out, weights);
  }
  // Adds a composite before its body; both have the result of `body`.
  template <class Body>
  uint32_t composite(uint32_t id, std::initializer_list<uint32_t> in, Body body) {
    const std::size_t at = out_.graph.begin();
    const uint32_t y = body();
    out_.graph.end(at, id, in, {y});
    return y;
  }

  uint32_t norm(uint32_t from, int64_t rows = all_tokens);
  struct quantised {
    uint32_t q, s;
  };
  quantised quantise(uint32_t from, uint32_t columns);
  uint32_t linear(quantised in, uint32_t rows, uint32_t weight);
  uint32_t unary(uint32_t op, uint32_t from, uint32_t columns);
  uint32_t binary(uint32_t op, uint32_t a, uint32_t b, uint32_t columns);

  golden_program gathered(uint32_t y, uint32_t columns, std::vector<uint32_t> blamed,
                          double (*expected)(uint32_t, uint32_t));
  // `program` as steps of one sequence, whose state has so many elements.
  static golden_program with_state(golden_program program, uint32_t elements);
  golden_program finished(uint32_t logits, uint32_t columns, std::vector<uint32_t> blamed,
                          double (*expected)(uint32_t, uint32_t));

  uint32_t x = 0;  // the input rows

 private:
  golden_program out_;
};

}  // namespace bitnet::probe::golden
