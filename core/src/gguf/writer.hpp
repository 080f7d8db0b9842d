#pragma once
// Writing GGUF: metadata, the table of tensors, then their bytes in that order.
//
// Atomic   the file appears under its name when finish() succeeds, whole or not at all; without it,
//          and after a kill, nothing is left (on file systems without O_TMPFILE a ".part" file).
// Version  3, little-endian, alignment 32.
// Errors   BITNET_INVALID_ARGUMENT when the path cannot be written, BITNET_IO when the disk
//          refuses.
// Source   docs/reference/gguf.md

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gguf/value.hpp"

namespace bitnet::gguf {

inline constexpr uint64_t written_alignment = 32;

// Key/value pairs in the file's own form.
class metadata_builder {
 public:
  void text(std::string_view key, std::string_view x);
  void u32(std::string_view key, uint32_t x);
  void i32s(std::string_view key, std::span<const int32_t> x);
  void f32(std::string_view key, float x);
  void f32s(std::string_view key, std::span<const float> x);
  void boolean(std::string_view key, bool x);
  void texts(std::string_view key, std::span<const std::string> x);
  void copy(std::string_view key, const value& content);

  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void begin(std::string_view key, value_type type);
  uint64_t count_ = 0;
  std::vector<std::byte> bytes_;
};

struct planned_tensor {
  std::string name;
  std::vector<uint64_t> ne;
  uint32_t type = 0;
  uint64_t bytes = 0;
};

// Everything before the tensors' bytes. Offsets are the padded sums of sizes, in order.
std::vector<std::byte> header_of(const metadata_builder& metadata,
                                 std::span<const planned_tensor> tensors);

class file_writer {
 public:
  // `overwrite`: whether a file of that name may be replaced at the end.
  static result<file_writer> create(const std::filesystem::path& path, bool overwrite);
  file_writer(file_writer&& other) noexcept;
  file_writer& operator=(file_writer&&) = delete;
  ~file_writer();

  result<void> write(std::span<const std::byte> bytes);
  // Zeros up to the next multiple of written_alignment.
  result<void> pad();
  enum class flush : uint8_t { yes, no };  // no: a crash of the system may leave a damaged file
  // Gives the file its name.
  result<void> finish(flush to_disk = flush::yes);
  [[nodiscard]] uint64_t written() const { return written_; }
  // What was written, for reading, before it has its name.
  [[nodiscard]] std::filesystem::path readable_path() const;

 private:
  file_writer() = default;
  [[nodiscard]] std::unexpected<failure> failed(const char* doing) const;

  std::filesystem::path path_, part_;  // part_: empty with O_TMPFILE
  bool overwrite_ = false;
  int descriptor_ = -1;
  uint64_t written_ = 0;
};

}  // namespace bitnet::gguf
