#pragma once
// Bounds-checked reading of a 64-bit ELF shared object in the host's byte order. It reads as the
// dynamic linker does: by addresses, through segments, and symbols by the hash table that the
// linker uses. A file that another reader could interpret differently is rejected.
// tests/core/plugin/elf_differential_test.cpp compares with the linker itself.

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/codes/codes.hpp"

namespace bitnet::plugin {

// Whether this process's dynamic linker takes files with this header. It skips others.
[[nodiscard]] bool is_for_this_machine(const Elf64_Ehdr& header);

// "x86-64"; "machine 999" for an unknown one.
[[nodiscard]] std::string machine_name(uint16_t machine);

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
  // BN-I-FORMAT if the dynamic section contradicts itself, or if a symbol looks exported but the
  // linker does not find it.
  [[nodiscard]] checked<std::vector<symbol>> symbols() const;

  // The names in `names` that the linker would not find here, whatever the version.
  [[nodiscard]] std::vector<std::string_view> lacking(std::vector<std::string_view> names) const;

  // The strings of all entries with this tag, such as DT_NEEDED.
  [[nodiscard]] std::vector<std::string_view> dynamic_strings(int64_t tag) const;
  // The entry with this tag, such as DT_FLAGS_1. Duplicates are allowed only for tags that name
  // libraries.
  [[nodiscard]] std::optional<uint64_t> dynamic_value(int64_t tag) const;

  // All entries before DT_NULL.
  [[nodiscard]] std::span<const Elf64_Dyn> dynamic() const { return dynamic_; }

  // A version of symbols that another library must have. A weak one may be missing.
  struct needed_version {
    std::string_view library, version;
    bool weak = false;
  };
  [[nodiscard]] std::vector<needed_version> needed_versions() const;
  // Versions that its own symbols have, such as GLIBC_2.36.
  [[nodiscard]] std::vector<std::string_view> defined_versions() const;

  [[nodiscard]] std::span<const Elf64_Phdr> segments() const { return segments_; }

 private:
  explicit elf_image(std::span<const std::byte> bytes) : bytes_(bytes) {}
  checked<void> read_headers();
  checked<void> read_segments(const Elf64_Ehdr& header);
  [[nodiscard]] checked<void> check_segments() const;
  checked<void> read_dynamic();
  [[nodiscard]] checked<void> check_dynamic() const;

  // `size` bytes of the file from `offset`; nullopt if out of range.
  [[nodiscard]] std::optional<std::span<const std::byte>> slice(uint64_t offset,
                                                                uint64_t size) const;
  // The bytes at a memory address, up to the end of the segment's file content.
  [[nodiscard]] std::optional<std::span<const std::byte>> at(uint64_t address, uint64_t size) const;
  [[nodiscard]] std::string_view strings() const;  // the dynamic string table; "" if there is none
  // A text of the dynamic string table; nullopt if it has no end in the table.
  [[nodiscard]] std::optional<std::string_view> text_at(uint64_t index) const;
  [[nodiscard]] std::string_view string_at(uint64_t index) const {
    return text_at(index).value_or(std::string_view());
  }
  [[nodiscard]] checked<std::vector<needed_version>> read_needed_versions() const;
  [[nodiscard]] checked<std::vector<std::string_view>> read_defined_versions() const;

  // The tables in which the linker looks names up, see elf_symbols.cpp.
  struct gnu_hash;
  struct sysv_hash;
  struct symbol_table;
  [[nodiscard]] checked<gnu_hash> read_gnu_hash(uint64_t address) const;
  [[nodiscard]] checked<sysv_hash> read_sysv_hash(uint64_t address) const;
  [[nodiscard]] checked<symbol_table> read_symbol_table() const;
  [[nodiscard]] checked<void> check_seen(const symbol_table& table, uint64_t index,
                                         const Elf64_Sym& entry, std::string_view name) const;

  template <class T>
  static std::optional<T> copy(std::optional<std::span<const std::byte>> part) {
    if (!part) return std::nullopt;
    T value;
    std::memcpy(&value, part->data(), sizeof value);
    return value;
  }
  template <class T>
  [[nodiscard]] std::optional<T> read(uint64_t offset) const {
    return copy<T>(slice(offset, sizeof(T)));
  }
  template <class T>
  [[nodiscard]] std::optional<T> read_at(uint64_t address) const {
    return copy<T>(at(address, sizeof(T)));
  }

  std::span<const std::byte> bytes_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Dyn> dynamic_;
};

}  // namespace bitnet::plugin
