#pragma once
// Bounds-checked reading of a 64-bit ELF shared object of the host's byte order, as the dynamic
// linker reads it: by addresses, which segments put there, and symbols by the hash table that it
// uses. A file that another reader could understand otherwise is refused.
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

// Does the dynamic linker of this process take files with this header? It passes over others.
[[nodiscard]] bool is_for_this_machine(const Elf64_Ehdr& head);

// "x86-64"; "machine 999" for one without a name here.
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
  // BN-I-FORMAT when the dynamic section contradicts itself, or a symbol that looks exported is
  // none to the linker.
  [[nodiscard]] checked<std::vector<symbol>> symbols() const;

  // Those of `names` that the linker would find no definition of here, whatever the version.
  [[nodiscard]] std::vector<std::string_view> lacking(std::vector<std::string_view> names) const;

  // The strings of all entries with this tag, such as DT_NEEDED.
  [[nodiscard]] std::vector<std::string_view> dynamic_strings(int64_t tag) const;
  // The entry with this tag, such as DT_FLAGS_1; only those that name libraries may be there twice.
  [[nodiscard]] std::optional<uint64_t> dynamic_value(int64_t tag) const;

  // All entries before the end.
  [[nodiscard]] std::span<const Elf64_Dyn> dynamic() const { return dynamic_; }

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
  checked<void> read_segments(const Elf64_Ehdr& head);
  [[nodiscard]] checked<void> check_segments() const;
  checked<void> read_dynamic();
  [[nodiscard]] checked<void> check_dynamic() const;

  // The bytes of the file from `offset`; nothing if they are not all there.
  [[nodiscard]] std::optional<std::span<const std::byte>> slice(uint64_t offset,
                                                                uint64_t size) const;
  // What lies in memory from `address` on, as far as it comes from the file and from one segment.
  [[nodiscard]] std::optional<std::span<const std::byte>> at(uint64_t address, uint64_t size) const;
  [[nodiscard]] std::string_view strings() const;  // the dynamic string table; "" if there is none
  // Of the dynamic string table; nothing if it does not end there.
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
