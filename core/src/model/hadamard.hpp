#pragma once
// Reads the keys of a file whose weights were rotated before they were quantised.
//
// H        The matrix of `block` rows, a power of two: H[i][j] = (-1)^popcount(i & j) /
//          sqrt(block). An input is multiplied by its signs, then each block of it by H.
// Errors   BITNET_BAD_DATA for keys that contradict themselves or the tensors, BITNET_UNSUPPORTED
//          for unknown versions, transforms and axes.
// Source   docs/reference/models.md#rotated-weights

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gguf/file.hpp"

namespace bitnet::model {

struct hadamard {
  struct width {
    uint64_t columns = 0;       // of an input
    std::vector<int8_t> signs;  // +1 or -1, one for each
  };
  uint32_t block = 0;                // elements that are rotated together
  std::vector<width> widths;         // empty: all signs are +1
  std::vector<std::string> weights;  // the layer of tensor W computes y = W H(s * x)
  std::vector<std::string> tables;   // a row r of such a tensor stands for s * H(r)
  // The heads of an input are reordered before the layers named ssm_out.
  bool heads_are_grouped = false;
};

// nullopt: nothing is rotated. Only the keys decide, not the types of the tensors.
result<std::optional<hadamard>> read_hadamard(const gguf::file& file);

}  // namespace bitnet::model
