#include "plugin/analysis/any_elf.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "plugin/codes/text.hpp"

// The offset of a member in the struct of the file's class.
#define BITNET_ELF_MEMBER(type, name)                                       \
  (wide_ ? member{offsetof(Elf64_##type, name), sizeof(Elf64_##type::name)} \
         : member{offsetof(Elf32_##type, name), sizeof(Elf32_##type::name)})
#define BITNET_ELF_SIZE(type) (wide_ ? sizeof(Elf64_##type) : sizeof(Elf32_##type))

namespace bitnet::plugin {
namespace {

// Far more than any linker writes; limits the time for hostile counts.
constexpr uint64_t most_segments = 128;
constexpr uint64_t most_sections = 65536;
constexpr uint64_t most_entries = 65536;
constexpr uint64_t most_symbols = 1 << 22;
constexpr uint64_t most_name_bytes = 1 << 28;  // total of a symbol table
constexpr std::size_t most_needed_versions = 65536;
constexpr std::size_t most_notes = 4096;

std::string_view text_in(std::string_view all, uint64_t index) {
  if (index >= all.size()) return {};
  const std::string_view rest = all.substr(index);
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

std::string_view as_text(std::span<const std::byte> part) {
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

}  // namespace

uint64_t any_elf::number_in(std::span<const std::byte> part, uint64_t at, std::size_t size,
                            bool big_endian) {
  if (at > part.size() || size > part.size() - at) return 0;
  uint64_t out = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t from = big_endian ? i : size - 1 - i;
    out = out << 8U | std::to_integer<uint64_t>(part[at + from]);
  }
  return out;
}

uint64_t any_elf::number(uint64_t at, std::size_t size) const {
  return number_in(bytes_, at, size, big_endian_);
}

uint64_t any_elf::get(uint64_t base, member of) const {
  return base > bytes_.size() ? 0 : number(base + of.at, of.bytes);
}

checked<any_elf> any_elf::open(std::span<const std::byte> bytes) {
  any_elf out(bytes);
  if (!as_text(bytes).starts_with(std::string_view(ELFMAG, SELFMAG)))
    return reject(code::inspect_not_elf, "is not an ELF file");
  const uint64_t of_class = number_in(bytes, EI_CLASS, 1, false);
  const uint64_t of_order = number_in(bytes, EI_DATA, 1, false);
  if ((of_class != ELFCLASS32 && of_class != ELFCLASS64) ||
      (of_order != ELFDATA2LSB && of_order != ELFDATA2MSB))
    return reject(
        code::inspect_not_elf,
        fmt::format("has a damaged ELF header: class {}, byte order {}", of_class, of_order));
  out.wide_ = of_class == ELFCLASS64;
  out.big_endian_ = of_order == ELFDATA2MSB;
  const std::size_t header_bytes = out.wide_ ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
  if (bytes.size() < header_bytes)
    return reject(code::inspect_truncated,
                  fmt::format("is cut off: an ELF header has {} bytes, the file has {}",
                              header_bytes, bytes.size()));
  out.type_ = static_cast<uint16_t>(out.number(offsetof(Elf64_Ehdr, e_type), 2));
  out.machine_ = static_cast<uint16_t>(out.number(offsetof(Elf64_Ehdr, e_machine), 2));
  out.read_segments();
  out.read_sections();
  out.read_dynamic();
  return out;
}

void any_elf::read_segments() {
  const uint64_t count = std::min(get(0, BITNET_ELF_MEMBER(Ehdr, e_phnum)), most_segments);
  const uint64_t from = get(0, BITNET_ELF_MEMBER(Ehdr, e_phoff));
  const std::size_t stride = BITNET_ELF_SIZE(Phdr);
  if (get(0, BITNET_ELF_MEMBER(Ehdr, e_phentsize)) != stride) return;
  for (uint64_t i = 0; i < count && !slice(from, (i + 1) * stride).empty(); ++i) {
    const uint64_t base = from + i * stride;
    segments_.push_back(
        {get(base, BITNET_ELF_MEMBER(Phdr, p_type)), get(base, BITNET_ELF_MEMBER(Phdr, p_offset)),
         get(base, BITNET_ELF_MEMBER(Phdr, p_vaddr)), get(base, BITNET_ELF_MEMBER(Phdr, p_filesz)),
         get(base, BITNET_ELF_MEMBER(Phdr, p_align))});
  }
}

void any_elf::read_sections() {
  const uint64_t count = std::min(get(0, BITNET_ELF_MEMBER(Ehdr, e_shnum)), most_sections);
  const uint64_t from = get(0, BITNET_ELF_MEMBER(Ehdr, e_shoff));
  const std::size_t stride = BITNET_ELF_SIZE(Shdr);
  if (from == 0 || get(0, BITNET_ELF_MEMBER(Ehdr, e_shentsize)) != stride) return;
  for (uint64_t i = 0; i < count && !slice(from, (i + 1) * stride).empty(); ++i) {
    const uint64_t base = from + i * stride;
    sections_.push_back(
        {get(base, BITNET_ELF_MEMBER(Shdr, sh_type)), get(base, BITNET_ELF_MEMBER(Shdr, sh_addr)),
         get(base, BITNET_ELF_MEMBER(Shdr, sh_offset)), get(base, BITNET_ELF_MEMBER(Shdr, sh_size)),
         get(base, BITNET_ELF_MEMBER(Shdr, sh_link)),
         get(base, BITNET_ELF_MEMBER(Shdr, sh_entsize))});
  }
}

void any_elf::read_dynamic() {
  const auto found = std::ranges::find(segments_, uint64_t{PT_DYNAMIC}, &segment::type);
  if (found == segments_.end()) return;
  const std::size_t stride = BITNET_ELF_SIZE(Dyn);
  const std::size_t word = stride / 2;
  const auto part = slice(found->offset, found->file_bytes);
  for (uint64_t at = 0; at + stride <= part.size() && dynamic_.size() < most_entries;
       at += stride) {
    const uint64_t tag = number_in(part, at, word, big_endian_);
    if (tag == DT_NULL) break;
    dynamic_.push_back(
        {wide_ ? static_cast<int64_t>(tag) : static_cast<int64_t>(static_cast<int32_t>(tag)),
         number_in(part, at + word, word, big_endian_)});
  }
}

std::span<const std::byte> any_elf::slice(uint64_t offset, uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) return {};
  return bytes_.subspan(offset, size);
}

std::span<const std::byte> any_elf::at(uint64_t address, uint64_t size) const {
  for (const segment& s : segments_)
    if (s.type == PT_LOAD && address >= s.address && address - s.address < s.file_bytes) {
      const uint64_t inside = address - s.address;
      if (size > s.file_bytes - inside || s.offset > bytes_.size()) return {};
      return slice(s.offset + inside, size);
    }
  return {};
}

std::optional<uint64_t> any_elf::dynamic_value(int64_t tag) const {
  const auto found = std::ranges::find(dynamic_, tag, &entry::tag);
  if (found == dynamic_.end()) return std::nullopt;
  return found->value;
}

std::string_view any_elf::dynamic_text(uint64_t index) const {
  const auto address = dynamic_value(DT_STRTAB);
  const auto size = dynamic_value(DT_STRSZ);
  return address && size ? text_in(as_text(at(*address, *size)), index) : std::string_view();
}

std::vector<std::string_view> any_elf::dynamic_strings(int64_t tag) const {
  std::vector<std::string_view> out;
  for (const entry& one : dynamic_)
    if (one.tag == tag) out.push_back(dynamic_text(one.value));
  std::erase_if(out, [](std::string_view text) { return text.empty(); });
  return out;
}

uint64_t any_elf::count_by_gnu_hash(uint64_t address) const {
  const auto table = at(address, 16);
  const uint64_t n_buckets = number_in(table, 0, 4, big_endian_);
  const uint64_t first = number_in(table, 4, 4, big_endian_);
  const uint64_t n_words = number_in(table, 8, 4, big_endian_);
  const uint64_t buckets = address + 16 + n_words * (wide_ ? 8 : 4);
  const auto lists = at(buckets, n_buckets * 4);
  uint64_t last = 0;
  for (uint64_t i = 0; i < lists.size(); i += 4)
    last = std::max(last, number_in(lists, i, 4, big_endian_));
  if (last < first) return first;  // nothing is exported
  const uint64_t chains = buckets + n_buckets * 4;
  for (uint64_t i = last; i < most_symbols; ++i) {
    const auto link = at(chains + (i - first) * 4, 4);
    if (link.empty()) return 0;
    if ((number_in(link, 0, 4, big_endian_) & 1U) != 0) return i + 1;
  }
  return 0;
}

uint64_t any_elf::count_by_sysv_hash(uint64_t address) const {
  // On these two machines the table has 64-bit numbers.
  constexpr uint16_t alpha = 0x9026;
  const std::size_t word = wide_ && (machine_ == EM_S390 || machine_ == alpha) ? 8 : 4;
  return number_in(at(address, 2 * word), word, word, big_endian_);
}

// As the dynamic linker counts, without section headers; by these if there is no hash table.
uint64_t any_elf::count_dynamic() const {
  uint64_t out = 0;
  if (const auto hash = dynamic_value(DT_GNU_HASH)) out = count_by_gnu_hash(*hash);
  if (const auto hash = dynamic_value(DT_HASH); hash && out == 0) out = count_by_sysv_hash(*hash);
  const auto table = dynamic_value(DT_SYMTAB);
  if (out != 0 || !table) return out;
  for (const section& s : sections_)
    if (s.type == SHT_DYNSYM && s.address == *table) return s.bytes / BITNET_ELF_SIZE(Sym);
  return 0;
}

std::vector<any_elf::symbol> any_elf::read_symbols(std::span<const std::byte> entries,
                                                   std::string_view strings) const {
  // Cut to end in a NUL, so that no search runs past the end again and again.
  strings = strings.substr(0, strings.rfind('\0') + 1);
  const std::size_t stride = BITNET_ELF_SIZE(Sym);
  const auto field = [&](uint64_t base, member of) {
    return number_in(entries, base + of.at, of.bytes, big_endian_);
  };
  std::vector<symbol> out;
  const uint64_t count = std::min<uint64_t>(entries.size() / stride, most_symbols);
  uint64_t name_bytes = 0;
  for (uint64_t i = 1; i < count && name_bytes < most_name_bytes; ++i) {  // 0 is the null symbol
    const uint64_t base = i * stride;
    const uint64_t info = field(base, BITNET_ELF_MEMBER(Sym, st_info));
    const uint64_t kind = ELF64_ST_TYPE(info);
    if (kind == STT_SECTION || kind == STT_FILE) continue;
    const std::string_view name = text_in(strings, field(base, BITNET_ELF_MEMBER(Sym, st_name)));
    name_bytes += name.size() + 1;
    const std::string_view plain = name.substr(0, name.find('@'));
    if (plain.empty()) continue;
    const uint64_t visibility = ELF64_ST_VISIBILITY(field(base, BITNET_ELF_MEMBER(Sym, st_other)));
    const bool defined = field(base, BITNET_ELF_MEMBER(Sym, st_shndx)) != SHN_UNDEF;
    out.push_back({plain, defined,
                   defined && ELF64_ST_BIND(info) != STB_LOCAL && visibility != STV_HIDDEN &&
                       visibility != STV_INTERNAL});
  }
  return out;
}

std::vector<any_elf::symbol> any_elf::dynamic_symbols() const {
  const uint64_t count = std::min(count_dynamic(), most_symbols);
  const auto table = dynamic_value(DT_SYMTAB);
  const auto strings = dynamic_value(DT_STRTAB);
  const auto size = dynamic_value(DT_STRSZ);
  if (!table || !strings || !size) return {};
  return read_symbols(at(*table, count * BITNET_ELF_SIZE(Sym)), as_text(at(*strings, *size)));
}

std::optional<std::vector<any_elf::symbol>> any_elf::table_symbols() const {
  const auto found = std::ranges::find(sections_, uint64_t{SHT_SYMTAB}, &section::type);
  if (found == sections_.end() || found->link >= sections_.size()) return std::nullopt;
  const section& strings = sections_[found->link];
  return read_symbols(slice(found->offset, found->bytes),
                      as_text(slice(strings.offset, strings.bytes)));
}

// Walks a list of lists, linked by distances; these are not negative, so there are no cycles. The
// structs are the same for both classes.
std::vector<std::string_view> any_elf::needed_versions() const {
  std::vector<std::string_view> out;
  const auto address = dynamic_value(DT_VERNEED);
  const auto field = [&](std::span<const std::byte> part, std::size_t from, std::size_t size) {
    return number_in(part, from, size, big_endian_);
  };
  uint64_t steps = 0;
  for (uint64_t library = address.value_or(0); address && steps < most_needed_versions;) {
    const auto needed = at(library, sizeof(Elf64_Verneed));
    if (needed.empty()) break;
    for (uint64_t next = library + field(needed, offsetof(Elf64_Verneed, vn_aux), 4);
         ++steps < most_needed_versions;) {
      const auto one = at(next, sizeof(Elf64_Vernaux));
      if (one.empty()) break;
      const std::string_view name = dynamic_text(field(one, offsetof(Elf64_Vernaux, vna_name), 4));
      if (!name.empty() && (field(one, offsetof(Elf64_Vernaux, vna_flags), 2) & VER_FLG_WEAK) == 0)
        out.push_back(name);
      const uint64_t distance = field(one, offsetof(Elf64_Vernaux, vna_next), 4);
      if (distance == 0) break;
      next += distance;
    }
    const uint64_t distance = field(needed, offsetof(Elf64_Verneed, vn_next), 4);
    if (distance == 0) break;
    library += distance;
  }
  return out;
}

std::vector<any_elf::note> any_elf::notes() const {
  std::vector<note> out;
  for (const segment& s : segments_) {
    if (s.type != PT_NOTE) continue;
    const auto part = slice(s.offset, s.file_bytes);
    const uint64_t align = s.align == 8 ? 8 : 4;
    const auto padded = [align](uint64_t n) { return (n + align - 1) & ~(align - 1); };
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= part.size() && out.size() < most_notes;) {
      const uint64_t owner_bytes = number_in(part, at, 4, big_endian_);
      const uint64_t bytes = number_in(part, at + 4, 4, big_endian_);
      const uint64_t owner = at + sizeof(Elf64_Nhdr);
      const uint64_t description = padded(owner + owner_bytes);
      if (description + bytes > part.size()) break;
      std::string_view name = as_text(part.subspan(owner, owner_bytes));
      if (name.ends_with('\0')) name.remove_suffix(1);
      out.push_back({name, static_cast<uint32_t>(number_in(part, at + 8, 4, big_endian_)),
                     part.subspan(description, bytes)});
      at = padded(description + bytes);
    }
  }
  return out;
}

}  // namespace bitnet::plugin

#undef BITNET_ELF_MEMBER
#undef BITNET_ELF_SIZE
