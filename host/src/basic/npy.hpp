#pragma once
// Writes NumPy's .npy format, version 1.0, float32, row by row.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "basic/result.hpp"
#include "files/new_file.hpp"

namespace bitnet::host {

// The header of an array in C order; a multiple of 64 bytes.
[[nodiscard]] std::string npy_header(const std::vector<uint64_t>& shape);

// "-" is standard output; otherwise like files::new_file.
class npy_file {
 public:
  static result<npy_file> create(const std::string& target, const std::vector<uint64_t>& shape);

  result<void> write(std::span<const float> values);
  result<void> commit();

 private:
  explicit npy_file(std::string target) : target_(std::move(target)) {}
  [[nodiscard]] std::unexpected<failure> broken(const files::problem& why) const;
  result<void> write_bytes(std::string_view bytes);

  std::string target_;
  std::optional<files::new_file> file_;  // empty: standard output
};

}  // namespace bitnet::host
