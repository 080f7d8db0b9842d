#pragma once
// Parses and checks the structure of one GGUF file, so that later code need not: every view lies
// inside the bytes, every tensor inside the data section, and tensors do not overlap.
//
// Versions  2 and 3, little-endian.
// Errors    BITNET_BAD_DATA for what no writer should write, BITNET_UNSUPPORTED for other versions
//           and byte orders.
// Owner     the caller of parse keeps `bytes` alive; keys, names and values are views of them.
// Memory    Grows with the bytes read, never with a count that the file claims.
// Source    docs/reference/gguf.md

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gguf/value.hpp"

namespace bitnet::gguf {

struct entry {
  std::string_view key;
  value content;
};

struct tensor_info {
  std::string_view name;
  uint32_t rank = 1;                       // 1 to 4
  std::array<uint64_t, 4> ne{1, 1, 1, 1};  // ne[0] is contiguous; none is 0
  uint64_t elements = 1;                   // their product
  uint32_t type = 0;                       // GGUF id, possibly an unknown one
  uint64_t offset = 0;                     // from the start of the file
  std::optional<uint64_t> exact_bytes;     // nullopt: type and shape do not decide it
  std::span<const std::byte> bytes;        // exact_bytes of them, else all up to the next tensor
  uint64_t available = 0;                  // bytes up to the next tensor or the end of the file
};

class container {
 public:
  static result<container> parse(std::span<const std::byte> bytes);

  [[nodiscard]] uint32_t version() const { return version_; }
  [[nodiscard]] uint64_t alignment() const { return alignment_; }
  [[nodiscard]] std::span<const entry> entries() const { return entries_; }        // file order
  [[nodiscard]] std::span<const tensor_info> tensors() const { return tensors_; }  // file order
  [[nodiscard]] const value* find(std::string_view key) const;  // nullptr: not there

  // The value of a key: nullopt if the file has no such key, a failure if it is of another kind.
  [[nodiscard]] result<std::optional<int64_t>> integer(std::string_view key) const;
  [[nodiscard]] result<std::optional<double>> real(std::string_view key) const;
  [[nodiscard]] result<std::optional<bool>> boolean(std::string_view key) const;
  [[nodiscard]] result<std::optional<std::string_view>> text(std::string_view key) const;

 private:
  uint32_t version_ = 0;
  uint64_t alignment_ = 0;
  std::vector<entry> entries_;
  std::vector<size_t> by_key_;  // indices of entries_, sorted by key
  std::vector<tensor_info> tensors_;
};

}  // namespace bitnet::gguf
