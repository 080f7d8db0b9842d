// Reads the dynamic symbols of a shared object as the dynamic linker does: by DT_GNU_HASH if
// present, else by DT_HASH. A symbol that the hash table does not reach is no export, whatever the
// symbol table lists. A file whose tables disagree is rejected.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>

#include "plugin/codes/text.hpp"
#include "plugin/inspection/elf_image.hpp"

namespace bitnet::plugin {
namespace {

constexpr uint64_t max_symbols = 1 << 22;  // far more than any linker writes

std::unexpected<defect> unreadable(const std::string& why = "") {
  return reject(code::inspect_not_elf, fmt::format("has no readable dynamic symbol table{}",
                                                   why.empty() ? "" : fmt::format(": {}", why)));
}

uint32_t gnu_hash_of(std::string_view name) {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

// System V ABI, chapter 5, "Hash Table".
uint32_t sysv_hash_of(std::string_view name) {
  uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    const uint32_t high = hash & 0xf0000000;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  return hash;
}

uint32_t number(std::span<const std::byte> table, uint64_t index) {
  uint32_t out = 0;
  std::memcpy(&out, table.data() + index * sizeof out, sizeof out);
  return out;
}

// Whether the linker would take the symbol, if its name is found.
bool is_visible(const Elf64_Sym& s) {
  constexpr auto types = std::to_array<uint8_t>(
      {STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_COMMON, STT_TLS, STT_GNU_IFUNC});
  constexpr auto bindings = std::to_array<uint8_t>({STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE});
  const uint8_t type = ELF64_ST_TYPE(s.st_info);
  return std::ranges::find(types, type) != types.end() &&
         std::ranges::find(bindings, ELF64_ST_BIND(s.st_info)) != bindings.end() &&
         (s.st_value != 0 || s.st_shndx == SHN_ABS || type == STT_TLS);
}

}  // namespace

struct elf_image::gnu_hash {
  std::span<const std::byte> bloom, buckets, chains;          // 8, 4 and 4 bytes each
  uint64_t n_words = 0, n_buckets = 0, first = 0, count = 0;  // `count`: of symbols
  uint32_t shift = 0;

  // The index of a symbol whose name satisfies `is_it`; 0: none.
  template <class Test>
  [[nodiscard]] uint64_t find(std::string_view name, const Test& is_it) const {
    const uint32_t hash = gnu_hash_of(name);
    uint64_t word = 0;
    std::memcpy(&word, bloom.data() + (hash / 64 & (n_words - 1)) * sizeof word, sizeof word);
    if ((word >> (hash % 64) & word >> ((hash >> shift) % 64) & 1) == 0) return 0;
    for (uint64_t i = number(buckets, hash % n_buckets); i != 0 && i < count; ++i) {
      const uint32_t link = number(chains, i - first);
      if ((link ^ hash) >> 1 == 0 && is_it(i)) return i;
      if ((link & 1U) != 0) break;
    }
    return 0;
  }
};

struct elf_image::sysv_hash {
  std::span<const std::byte> buckets, chains;
  uint64_t n_buckets = 0, count = 0;

  template <class Test>
  [[nodiscard]] uint64_t find(std::string_view name, const Test& is_it) const {
    uint64_t i = n_buckets == 0 ? 0 : number(buckets, sysv_hash_of(name) % n_buckets);
    for (uint64_t steps = 0; i != 0 && i < count && steps < count; ++steps) {
      if (is_it(i)) return i;
      i = number(chains, i);
    }
    return 0;
  }
};

struct elf_image::symbol_table {
  std::span<const std::byte> entries, versions;  // `versions` is empty if there are none
  uint64_t count = 0;
  std::optional<gnu_hash> gnu;
  std::optional<sysv_hash> sysv;

  [[nodiscard]] Elf64_Sym entry(uint64_t i) const {
    Elf64_Sym out;
    std::memcpy(&out, entries.data() + i * sizeof out, sizeof out);
    return out;
  }
};

checked<elf_image::gnu_hash> elf_image::read_gnu_hash(uint64_t address) const {
  struct header {
    uint32_t n_buckets, first, n_words, shift;
  };
  const auto table = read_at<header>(address);
  if (!table || !std::has_single_bit(table->n_words) || table->n_buckets == 0 ||
      table->first == 0 || table->shift >= 32)
    return unreadable("its DT_GNU_HASH is damaged");
  gnu_hash out{{},           {},           {},          table->n_words, table->n_buckets,
               table->first, table->first, table->shift};
  const uint64_t words = address + sizeof *table;
  const uint64_t buckets = words + out.n_words * 8;
  const uint64_t chains = buckets + out.n_buckets * 4;
  const auto bloom = at(words, out.n_words * 8);
  const auto lists = at(buckets, out.n_buckets * 4);
  if (!bloom || !lists) return unreadable("its DT_GNU_HASH is damaged");
  out.bloom = *bloom;
  out.buckets = *lists;
  uint64_t last = 0;
  for (uint64_t i = 0; i < out.n_buckets; ++i) {
    const uint64_t begin = number(out.buckets, i);
    if (begin != 0 && begin < out.first) return unreadable("its DT_GNU_HASH is damaged");
    last = std::max(last, begin);
  }
  if (last == 0) return out;  // nothing is exported
  // The chains end with the last symbol.
  for (uint64_t i = last;; ++i) {
    const auto link =
        i < max_symbols ? read_at<uint32_t>(chains + (i - out.first) * 4) : std::nullopt;
    if (!link) return unreadable("its DT_GNU_HASH does not end");
    out.count = i + 1;
    if ((*link & 1U) != 0) break;
  }
  const auto all = at(chains, (out.count - out.first) * 4);
  if (!all) return unreadable("its DT_GNU_HASH is damaged");
  out.chains = *all;
  return out;
}

checked<elf_image::sysv_hash> elf_image::read_sysv_hash(uint64_t address) const {
  struct header {
    uint32_t n_buckets, n_chains;
  };
  const auto table = read_at<header>(address);
  if (!table || table->n_chains > max_symbols) return unreadable("its DT_HASH is damaged");
  const uint64_t begin = address + sizeof *table;
  const auto buckets = at(begin, uint64_t{table->n_buckets} * 4);
  const auto chains = at(begin + uint64_t{table->n_buckets} * 4, uint64_t{table->n_chains} * 4);
  if (!buckets || !chains) return unreadable("its DT_HASH is damaged");
  // The linker follows indices without checking their range or detecting cycles.
  std::vector<bool> seen(table->n_chains);
  for (uint64_t bucket = 0; bucket < table->n_buckets; ++bucket)
    for (uint32_t i = number(*buckets, bucket); i != 0; i = number(*chains, i)) {
      if (i >= table->n_chains || seen[i]) return unreadable("its DT_HASH is damaged");
      seen[i] = true;
    }
  return sysv_hash{*buckets, *chains, table->n_buckets, table->n_chains};
}

checked<elf_image::symbol_table> elf_image::read_symbol_table() const {
  symbol_table out;
  if (const auto address = dynamic_value(DT_GNU_HASH)) {
    auto hash = read_gnu_hash(*address);
    if (!hash) return std::unexpected(std::move(hash.error()));
    out.count = hash->count;
    out.gnu = *hash;
  }
  if (const auto address = dynamic_value(DT_HASH)) {
    auto hash = read_sysv_hash(*address);
    if (!hash) return std::unexpected(std::move(hash.error()));
    // Without exports DT_GNU_HASH does not show the number of symbols.
    if (out.gnu && hash->count != out.count && !out.gnu->chains.empty())
      return unreadable(
          fmt::format("DT_HASH has {} symbols, DT_GNU_HASH has {}", hash->count, out.count));
    out.count = hash->count;
    out.sysv = *hash;
  }
  const auto address = dynamic_value(DT_SYMTAB);
  if (!address || out.count == 0) return unreadable();
  const auto entries = at(*address, out.count * sizeof(Elf64_Sym));
  if (!entries) return unreadable();
  out.entries = *entries;
  if (const auto versions = dynamic_value(DT_VERSYM)) {
    const auto table = at(*versions, out.count * sizeof(Elf64_Versym));
    if (!table) return unreadable("the versions of its symbols are nowhere");
    out.versions = *table;
  }
  return out;
}

// Checks that the linker finds each symbol that looks exported, by each hash table.
checked<void> elf_image::check_seen(const symbol_table& table, uint64_t index,
                                    const Elf64_Sym& entry, std::string_view name) const {
  const auto is_it = [&](uint64_t i) {
    const Elf64_Sym other = table.entry(i);
    return is_visible(other) && string_at(other.st_name) == name;
  };
  if (!is_visible(entry) || (table.gnu && table.gnu->find(name, is_it) == 0) ||
      (table.sysv && table.sysv->find(name, is_it) == 0))
    return unreadable(fmt::format("it lists the symbol '{}', which the linker would not find",
                                  printable(name, 128)));
  constexpr Elf64_Versym hidden = 0x8000;
  Elf64_Versym version = 0;
  if (!table.versions.empty())
    std::memcpy(&version, table.versions.data() + index * sizeof version, sizeof version);
  if ((version & hidden) != 0)
    return unreadable(fmt::format("its symbol '{}' has a hidden version", printable(name, 128)));
  return {};
}

checked<std::vector<elf_image::symbol>> elf_image::symbols() const {
  const auto table = read_symbol_table();
  if (!table) return std::unexpected(table.error());
  std::vector<symbol> out;
  for (uint64_t i = 1; i < table->count; ++i) {  // 0 is the null symbol
    const Elf64_Sym entry = table->entry(i);
    const auto name = text_at(entry.st_name);
    if (!name) return unreadable("a name lies outside of the string table");
    // The linker treats an undefined symbol with a value as an export.
    const symbol one{*name, static_cast<uint8_t>(ELF64_ST_BIND(entry.st_info)),
                     static_cast<uint8_t>(ELF64_ST_VISIBILITY(entry.st_other)),
                     entry.st_shndx != SHN_UNDEF || entry.st_value != 0};
    if (one.defined && one.binding != STB_LOCAL && one.visibility != STV_HIDDEN &&
        one.visibility != STV_INTERNAL)
      if (auto fine = check_seen(*table, i, entry, *name); !fine)
        return std::unexpected(std::move(fine.error()));
    out.push_back(one);
  }
  return out;
}

std::vector<std::string_view> elf_image::lacking(std::vector<std::string_view> names) const {
  const auto table = read_symbol_table();
  if (!table) return names;
  std::erase_if(names, [&](std::string_view name) {
    const auto is_it = [&](uint64_t i) {
      const Elf64_Sym s = table->entry(i);
      return is_visible(s) && s.st_shndx != SHN_UNDEF && string_at(s.st_name) == name;
    };
    return table->gnu ? table->gnu->find(name, is_it) != 0 : table->sysv->find(name, is_it) != 0;
  });
  return names;
}

}  // namespace bitnet::plugin
