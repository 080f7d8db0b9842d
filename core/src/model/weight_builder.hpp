#pragma once
// The weights of a model, each taken by name from the tensors of its file or made here.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/reading.hpp"
#include "gguf/container.hpp"
#include "model/read.hpp"

namespace bitnet::model {

// Appends to the weights of `to` and answers their indices; knows at the end which tensors were not
// used.
class weight_builder {
 public:
  weight_builder(loaded& to, const load_options& options, formats::q2_finding q2);

  [[nodiscard]] bool has(const std::string& name) const { return to_.file.find(name) != nullptr; }

  // A norm's factors or RoPE's divisors, delivered as F32.
  result<uint32_t> vector(const std::string& name, uint64_t k);
  // The factors of a short convolution: n for each of m columns, delivered as F32.
  result<uint32_t> factors(const std::string& name, uint64_t n, uint64_t m);
  // A vector's numbers, where they are no weight by themselves.
  result<std::vector<float>> numbers(const std::string& name, uint64_t k);
  // A matrix that may be ternary or dense.
  result<uint32_t> matrix(const std::string& name, uint64_t k, uint64_t m);
  // A linear layer: a matrix whose scales are multiplied by <name>.scale if the file has it.
  result<uint32_t> linear(const std::string& name, uint64_t k, uint64_t m);
  // Numbers that follow from the metadata, or from tensors that are no weights by themselves.
  result<uint32_t> add_made(const std::string& name, std::vector<float> made, uint32_t n_rows = 1);

  // Lets the tensors of blocks [first, end) go.
  void skip_blocks(uint32_t first, uint32_t end);
  // An unused tensor would be part of a different computation.
  [[nodiscard]] result<void> check_all_taken() const;

 private:
  [[nodiscard]] bool is_taken(const std::string& name) const;
  result<formats::source> take(const std::string& name, uint64_t k, uint64_t m);
  // The scales that some forms keep in a tensor of their own: one, or one for 32 elements.
  formats::companion scales_of(const std::string& name, uint64_t n);
  static std::string shape_text(const gguf::tensor_info& t);
  result<uint32_t> add(const std::string& name, const formats::source& from,
                       result<formats::reading> understood, uint32_t rank);

  loaded& to_;
  const load_options& options_;
  formats::q2_finding q2_;
  std::vector<bool> taken_;  // file.tensors(), same index
  std::optional<int64_t> file_type_;
};

}  // namespace bitnet::model
