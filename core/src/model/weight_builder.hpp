#pragma once
// Collects the weights of a model, by name from the tensors of its file, or computed.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "formats/reading.hpp"
#include "gguf/container.hpp"
#include "model/read.hpp"

namespace bitnet::model {

// Appends weights to `to` and returns their indices; finds the tensors that were not used.
class weight_builder {
 public:
  weight_builder(loaded& to, const load_options& options, formats::q2_finding q2);

  [[nodiscard]] bool has(const std::string& name) const { return to_.file.find(name) != nullptr; }

  // A norm's factors or RoPE's divisors, delivered as F32.
  result<uint32_t> vector(const std::string& name, uint64_t k);
  // The factors of a short convolution: n for each of m columns, delivered as F32.
  result<uint32_t> factors(const std::string& name, uint64_t n, uint64_t m);
  // The numbers of a vector that is no weight by itself.
  result<std::vector<float>> numbers(const std::string& name, uint64_t k);
  // A matrix that may be ternary or dense.
  result<uint32_t> matrix(const std::string& name, uint64_t k, uint64_t m);
  // A linear layer: a matrix whose scales are multiplied by <name>.scale if the file has it.
  result<uint32_t> linear(const std::string& name, uint64_t k, uint64_t m);
  // Adds numbers that are computed from metadata, or from tensors that are no weights themselves.
  result<uint32_t> add_made(const std::string& name, std::vector<float> made, uint32_t n_rows = 1);

  // Marks the tensors of blocks [first, end) as not needed.
  void skip_blocks(uint32_t first, uint32_t end);
  // Rejects a file with an unused tensor: its model computes something else.
  [[nodiscard]] result<void> check_all_taken() const;

 private:
  [[nodiscard]] bool is_taken(const std::string& name) const;
  result<formats::source> take(const std::string& name, uint64_t k, uint64_t m);
  // The scales that some forms keep in another tensor: one, or one per 32 elements.
  formats::companion scales_of(const std::string& name, uint64_t n);
  static std::string shape_text(const gguf::tensor_info& t);
  result<uint32_t> add(const std::string& name, const formats::source& from,
                       result<formats::reading> understood, uint32_t rank);

  loaded& to_;
  const load_options& options_;
  formats::q2_finding q2_;
  std::vector<bool> taken_;  // one per tensor of file.tensors()
  std::optional<int64_t> file_type_;
};

}  // namespace bitnet::model
