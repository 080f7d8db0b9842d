#pragma once
// Bounds-checked reading of an ELF file of any machine, word size and byte order, to describe it.
// Nothing is rejected: parts that cannot be read are left out. plugin/inspection/elf_image.hpp
// reads files that may be loaded, and is strict.

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "plugin/codes/codes.hpp"

namespace bitnet::plugin {

class any_elf {
 public:
  // BN-I-FORMAT if there is no whole ELF header. `bytes` must outlive the object.
  static checked<any_elf> open(std::span<const std::byte> bytes);

  [[nodiscard]] bool is_wide() const { return wide_; }  // 64-bit
  [[nodiscard]] bool is_big_endian() const { return big_endian_; }
  [[nodiscard]] uint16_t type() const { return type_; }        // ET_*
  [[nodiscard]] uint16_t machine() const { return machine_; }  // EM_*

  struct note {
    std::string_view owner;  // without its NUL
    uint32_t type = 0;
    std::span<const std::byte> description;
  };
  [[nodiscard]] std::vector<note> notes() const;

  struct symbol {
    std::string_view name;  // without the version behind '@'
    bool defined = false;
    bool exported = false;  // defined, and visible to other objects
  };
  // Functions and variables; no sections, no source files.
  [[nodiscard]] std::vector<symbol> dynamic_symbols() const;
  // Symbols of the table that `strip` removes; nullopt if there is none.
  [[nodiscard]] std::optional<std::vector<symbol>> table_symbols() const;

  // The strings of all entries with this tag, such as DT_NEEDED.
  [[nodiscard]] std::vector<std::string_view> dynamic_strings(int64_t tag) const;
  [[nodiscard]] std::optional<uint64_t> dynamic_value(int64_t tag) const;

  // Versions of symbols that other libraries must have, except weak ones.
  [[nodiscard]] std::vector<std::string_view> needed_versions() const;

  // A number of 1, 2, 4 or 8 bytes in the file's byte order; 0 if out of range.
  [[nodiscard]] static uint64_t number_in(std::span<const std::byte> part, uint64_t at,
                                          std::size_t size, bool big_endian);

 private:
  // A struct member whose place differs between 32 and 64 bits.
  struct member {
    std::size_t at, bytes;
  };
  struct segment {
    uint64_t type, offset, address, file_bytes, align;
  };
  struct section {
    uint64_t type, address, offset, bytes, link, entry_bytes;
  };
  struct entry {
    int64_t tag;
    uint64_t value;
  };

  explicit any_elf(std::span<const std::byte> bytes) : bytes_(bytes) {}
  void read_segments();
  void read_sections();
  void read_dynamic();
  [[nodiscard]] uint64_t number(uint64_t at, std::size_t size) const;
  [[nodiscard]] uint64_t get(uint64_t base, member of) const;
  // The bytes at a memory address; empty if they are not all in one segment of the file.
  [[nodiscard]] std::span<const std::byte> at(uint64_t address, uint64_t size) const;
  [[nodiscard]] std::span<const std::byte> slice(uint64_t offset, uint64_t size) const;
  [[nodiscard]] std::string_view dynamic_text(uint64_t index) const;
  [[nodiscard]] uint64_t count_by_gnu_hash(uint64_t address) const;
  [[nodiscard]] uint64_t count_by_sysv_hash(uint64_t address) const;
  [[nodiscard]] uint64_t count_dynamic() const;
  [[nodiscard]] std::vector<symbol> read_symbols(std::span<const std::byte> entries,
                                                 std::string_view strings) const;

  std::span<const std::byte> bytes_;
  bool wide_ = false, big_endian_ = false;
  uint16_t type_ = 0, machine_ = 0;
  std::vector<segment> segments_;
  std::vector<section> sections_;
  std::vector<entry> dynamic_;
};

}  // namespace bitnet::plugin
