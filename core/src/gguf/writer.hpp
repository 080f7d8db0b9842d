#pragma once
// Writing GGUF: metadata, the table of tensors, then their bytes in that order.
//
// Atomic   as files::new_file: a regular file appears under its name when finish() succeeds, whole
//          or not at all.
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
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "files/new_file.hpp"
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

  result<void> write(std::span<const std::byte> bytes);
  // Zeros up to the next multiple of written_alignment.
  result<void> pad();
  // Gives the file its name.
  result<void> finish();
  [[nodiscard]] uint64_t written() const { return written_; }
  // What was written, for reading, before it has its name; "" of a pipe or a device.
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
