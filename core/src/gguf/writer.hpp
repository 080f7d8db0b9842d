#pragma once
// Writes GGUF: metadata, the table of tensors, then their bytes in the same order.
//
// Atomic   As files::new_file: finish() gives a regular file its name, so that it appears whole or
//          not at all.
// Version  3, little-endian, alignment 32.
// Errors   BITNET_INVALID_ARGUMENT when the path cannot be written, BITNET_IO when a write fails.
// Source   docs/reference/gguf.md

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "files/new_file.hpp"
#include "gguf/value.hpp"

namespace bitnet::gguf {

inline constexpr uint64_t written_alignment = 32;

// Builds key/value pairs in GGUF's binary form.
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

// Makes everything before the tensors' bytes. Offsets are the padded sums of sizes, in order.
std::vector<std::byte> header_of(const metadata_builder& metadata,
                                 std::span<const planned_tensor> tensors);

class file_writer {
 public:
  // `overwrite`: whether to replace an existing file of that name.
  static result<file_writer> create(const std::filesystem::path& path, bool overwrite);

  result<void> write(std::span<const std::byte> bytes);
  // Writes zeros up to the next multiple of written_alignment.
  result<void> pad();
  // Gives the file its name.
  result<void> finish();
  [[nodiscard]] uint64_t written() const { return written_; }
  // Path for reading what was written, before it has its name; "" for a pipe or a device.
  [[nodiscard]] std::filesystem::path readable_path() const {
    return file_.is_regular() ? file_.readable_path() : std::filesystem::path();
  }

 private:
  file_writer(std::filesystem::path path, files::new_file file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  files::new_file file_;
  uint64_t written_ = 0;
};

}  // namespace bitnet::gguf
