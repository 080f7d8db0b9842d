#pragma once
// Bounds-checked reading of a 64-bit ELF shared object of the host's byte order.

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/codes.hpp"

namespace bitnet::plugin {

class elf_image {
 public:
  // BN-I-FORMAT, BN-I-MACHINE, BN-I-TRUNCATED. `bytes` must outlive the image.
  static checked<elf_image> open(std::span<const std::byte> bytes);

  struct note {
    std::string_view owner;  // without its NUL
    uint32_t type = 0;
    std::span<const std::byte> description;
  };
  [[nodiscard]] std::vector<note> notes() const;

  struct symbol {
    std::string_view name;
    uint8_t binding = 0;     // STB_*
    uint8_t visibility = 0;  // STV_*
    bool defined = false;
  };
  // BN-I-FORMAT when the dynamic section contradicts itself.
  [[nodiscard]] checked<std::vector<symbol>> symbols() const;

  // The strings of all entries with this tag, such as DT_NEEDED.
  [[nodiscard]] std::vector<std::string_view> dynamic_strings(int64_t tag) const;
  // The first entry with this tag, such as DT_FLAGS_1.
  [[nodiscard]] std::optional<uint64_t> dynamic_value(int64_t tag) const;

  // Versions of symbols that it wants other libraries to have. A weak one may be missing.
  struct needed_version {
    std::string_view library, version;
    bool weak = false;
  };
  [[nodiscard]] std::vector<needed_version> needed_versions() const;
  // Versions of symbols that it has itself, such as GLIBC_2.36.
  [[nodiscard]] std::vector<std::string_view> defined_versions() const;

  [[nodiscard]] std::span<const Elf64_Phdr> segments() const { return segments_; }

 private:
  explicit elf_image(std::span<const std::byte> bytes) : bytes_(bytes) {}
  checked<void> read_headers();
  void read_dynamic(const Elf64_Phdr& segment);

  // The bytes of the file from `offset`; nothing if they are not all there.
  [[nodiscard]] std::optional<std::span<const std::byte>> slice(uint64_t offset,
                                                                uint64_t size) const;
  // Where a virtual address lies in the file.
  [[nodiscard]] std::optional<uint64_t> offset_of(uint64_t address) const;
  [[nodiscard]] std::string_view string_at(uint64_t index) const;  // of the dynamic string table
  [[nodiscard]] std::optional<uint64_t> symbol_count() const;
  [[nodiscard]] std::optional<uint64_t> gnu_hash_count() const;

  template <class T>
  [[nodiscard]] std::optional<T> read(uint64_t offset) const {
    const auto part = slice(offset, sizeof(T));
    if (!part) return std::nullopt;
    T value;
    std::memcpy(&value, part->data(), sizeof value);
    return value;
  }

  std::span<const std::byte> bytes_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Dyn> dynamic_;
  std::string_view strings_;
};

}  // namespace bitnet::plugin
