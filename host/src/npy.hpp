#pragma once
// NumPy's .npy format, version 1.0, float32, written as rows come.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "result.hpp"

namespace bitnet::host {

// The header of an array in C order; a multiple of 64 bytes.
[[nodiscard]] std::string npy_header(const std::vector<uint64_t>& shape);

// Writes beside the target and renames at the end, so that nobody sees a part of it and a failure
// leaves the old file. "-" is standard output.
class npy_file {
 public:
  static result<npy_file> create(const std::string& target, const std::vector<uint64_t>& shape);
  ~npy_file();
  npy_file(npy_file&& other) noexcept;
  npy_file& operator=(npy_file&&) = delete;

  result<void> write(std::span<const float> values);
  result<void> commit();

 private:
  npy_file(int fd, std::string target, std::string temporary)
      : fd_(fd), target_(std::move(target)), temporary_(std::move(temporary)) {}
  [[nodiscard]] std::unexpected<failure> broken(const char* doing) const;

  int fd_;
  std::string target_;
  std::string temporary_;  // "" for standard output
};

}  // namespace bitnet::host
