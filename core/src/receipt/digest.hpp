#pragma once
// SHA-256, piece by piece, and of files whose sums are remembered.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace bitnet::receipt {

class sha256 {
 public:
  sha256();
  ~sha256();
  sha256(const sha256&) = delete;
  sha256& operator=(const sha256&) = delete;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  // 64 hexadecimal digits, lower case. Nothing may be added afterwards.
  [[nodiscard]] std::string hex();
  // The 32 bytes themselves, likewise.
  [[nodiscard]] std::string bytes();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

// A file that is open for reading.
struct open_file {
  int descriptor = -1;
  uint64_t size_bytes = 0;
  std::string identity;  // changes with whatever changes the file; "": its sum is not remembered
  std::filesystem::path path;
};

// Of all its bytes. BITNET_BAD_DATA if it has fewer by now.
[[nodiscard]] result<std::string> sha256_of(const open_file& file);

// Sums of files that were read once, in a folder that only its owner may write: one small file for
// each, named by the identity. A sum is believed as long as the identity is the same.
class remembered_sums {
 public:
  // "": nothing is remembered.
  explicit remembered_sums(std::filesystem::path folder) : folder_(std::move(folder)) {}
  [[nodiscard]] result<std::string> of(const open_file& file) const;

 private:
  [[nodiscard]] std::string recall(const open_file& file) const;
  void remember(const open_file& file, const std::string& sum) const;

  const std::filesystem::path folder_;
};

}  // namespace bitnet::receipt
