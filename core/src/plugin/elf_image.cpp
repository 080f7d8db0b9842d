#include "plugin/elf_image.hpp"

#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <utility>

#include "plugin/text.hpp"

namespace bitnet::plugin {
namespace {

constexpr auto machines = std::to_array<std::pair<uint16_t, std::string_view>>({
    {EM_X86_64, "x86-64"},
    {EM_AARCH64, "aarch64"},
    {EM_RISCV, "riscv64"},
    {EM_PPC64, "ppc64"},
    {EM_S390, "s390x"},
    {EM_386, "i386"},
    {EM_ARM, "arm"},
    {258 /* EM_LOONGARCH */, "loongarch64"},
});

#if defined(__x86_64__)
constexpr uint16_t this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t this_machine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t this_machine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr uint16_t this_machine = EM_PPC64;
#elif defined(__s390x__)
constexpr uint16_t this_machine = EM_S390;
#elif defined(__loongarch__)
constexpr uint16_t this_machine = 258;
#else
#error "say here which ELF machine this is"
#endif

constexpr unsigned char this_byte_order =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

// Far above what any linker writes; keeps hostile counts from costing time.
constexpr std::size_t max_segments = 1024;
constexpr std::size_t max_dynamic_entries = 65536;
constexpr uint64_t max_symbols = 1 << 22;
constexpr uint64_t max_versions = 65536;  // of all libraries together

std::string machine_name(uint16_t machine) {
  for (const auto& [value, name] : machines)
    if (value == machine) return std::string(name);
  return "machine " + std::to_string(machine);
}

std::unexpected<defect> not_elf(const std::string& why) {
  return reject(code::inspect_not_elf, why);
}

std::unexpected<defect> cut_off(uint64_t needs, uint64_t has) {
  return reject(code::inspect_truncated, "is cut off: it should have at least " +
                                             std::to_string(needs) + " bytes and has " +
                                             std::to_string(has));
}

struct elf_closer {
  void operator()(Elf* e) const { elf_end(e); }
};

}  // namespace

checked<elf_image> elf_image::open(std::span<const std::byte> bytes) {
  if (bytes.empty()) return not_elf("is empty; a shared object was expected");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(std::string_view(ELFMAG, SELFMAG)))
    return not_elf("is not an ELF shared object; it begins with '" + printable(text.substr(0, 16)) +
                   "'");
  if (bytes.size() < sizeof(Elf64_Ehdr)) return cut_off(sizeof(Elf64_Ehdr), bytes.size());
  elf_image image(bytes);
  if (auto fine = image.read_headers(); !fine) return std::unexpected(std::move(fine.error()));
  return image;
}

checked<void> elf_image::read_headers() {
  const auto head = read<Elf64_Ehdr>(0).value_or(Elf64_Ehdr{});  // open() saw that it is there
  if (head.e_ident[EI_CLASS] != ELFCLASS64)
    return reject(code::inspect_machine,
                  "is not a 64-bit object; this machine is 64-bit " + machine_name(this_machine));
  if (head.e_ident[EI_DATA] != this_byte_order)
    return reject(code::inspect_machine, "has another byte order than this machine, which is " +
                                             machine_name(this_machine));
  if (head.e_machine != this_machine)
    return reject(code::inspect_machine, "was built for " + machine_name(head.e_machine) +
                                             ", this machine is " + machine_name(this_machine));
  if (head.e_type != ET_DYN)
    return not_elf("is an ELF file but not a shared object (type " + std::to_string(head.e_type) +
                   ")");
  if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum == 0 || head.e_phnum > max_segments)
    return not_elf("has no usable program headers");
  const uint64_t table_bytes = uint64_t{head.e_phnum} * sizeof(Elf64_Phdr);
  if (!slice(head.e_phoff, table_bytes)) return cut_off(head.e_phoff + table_bytes, bytes_.size());
  const uint64_t section_bytes = uint64_t{head.e_shnum} * head.e_shentsize;
  if (head.e_shoff != 0 && !slice(head.e_shoff, section_bytes))
    return cut_off(head.e_shoff + section_bytes, bytes_.size());

  elf_version(EV_CURRENT);
  // libelf only reads from the memory; its interface predates const.
  const std::unique_ptr<Elf, elf_closer> elf(
      elf_memory(const_cast<char*>(reinterpret_cast<const char*>(bytes_.data())), bytes_.size()));
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF) return not_elf("has a damaged ELF header");
  for (int i = 0; i < head.e_phnum; ++i) {
    GElf_Phdr segment{};
    if (gelf_getphdr(elf.get(), i, &segment) == nullptr)
      return not_elf("has damaged program headers");
    if (!slice(segment.p_offset, segment.p_filesz) && segment.p_type == PT_LOAD)
      return cut_off(segment.p_offset + segment.p_filesz, bytes_.size());
    segments_.push_back(segment);
  }
  for (const Elf64_Phdr& segment : segments_)
    if (segment.p_type == PT_DYNAMIC) read_dynamic(segment);
  if ((dynamic_value(DT_FLAGS_1).value_or(0) & DF_1_PIE) != 0)
    return not_elf("is a program, not a shared object");
  return {};
}

void elf_image::read_dynamic(const Elf64_Phdr& segment) {
  const std::size_t n =
      std::min<uint64_t>(segment.p_filesz / sizeof(Elf64_Dyn), max_dynamic_entries);
  for (std::size_t i = 0; i < n; ++i) {
    const auto entry = read<Elf64_Dyn>(segment.p_offset + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) break;
    dynamic_.push_back(*entry);
  }
  const auto address = dynamic_value(DT_STRTAB);
  const auto size = dynamic_value(DT_STRSZ);
  if (!address || !size) return;
  const auto offset = offset_of(*address);
  const auto part = offset ? slice(*offset, *size) : std::nullopt;
  if (part) strings_ = {reinterpret_cast<const char*>(part->data()), part->size()};
}

std::optional<std::span<const std::byte>> elf_image::slice(uint64_t offset, uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) return std::nullopt;
  return bytes_.subspan(offset, size);
}

std::optional<uint64_t> elf_image::offset_of(uint64_t address) const {
  for (const Elf64_Phdr& segment : segments_)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);  // inside the file: checked on reading
  return std::nullopt;
}

std::optional<uint64_t> elf_image::dynamic_value(int64_t tag) const {
  for (const Elf64_Dyn& entry : dynamic_)
    if (entry.d_tag == tag) return entry.d_un.d_val;
  return std::nullopt;
}

std::string_view elf_image::string_at(uint64_t index) const {
  if (index >= strings_.size()) return {};
  const std::string_view rest = strings_.substr(index);
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

std::vector<std::string_view> elf_image::dynamic_strings(int64_t tag) const {
  std::vector<std::string_view> out;
  for (const Elf64_Dyn& entry : dynamic_)
    if (entry.d_tag == tag)
      if (const auto text = string_at(entry.d_un.d_val); !text.empty()) out.push_back(text);
  return out;
}

// Both version tables are lists of lists, linked by distances; as distances are not negative, they
// cannot lead back.
std::vector<elf_image::needed_version> elf_image::needed_versions() const {
  std::vector<needed_version> out;
  const auto address = dynamic_value(DT_VERNEED);
  auto at = address ? offset_of(*address) : std::nullopt;
  while (at) {
    const auto library = read<Elf64_Verneed>(*at);
    if (!library) return out;
    for (uint64_t next = *at + library->vn_aux;;) {
      const auto version = read<Elf64_Vernaux>(next);
      if (!version || out.size() == max_versions) return out;
      out.push_back({string_at(library->vn_file), string_at(version->vna_name),
                     (version->vna_flags & VER_FLG_WEAK) != 0});
      if (version->vna_next == 0) break;
      next += version->vna_next;
    }
    if (library->vn_next == 0) return out;
    *at += library->vn_next;
  }
  return out;
}

std::vector<std::string_view> elf_image::defined_versions() const {
  std::vector<std::string_view> out;
  const auto address = dynamic_value(DT_VERDEF);
  auto at = address ? offset_of(*address) : std::nullopt;
  while (at && out.size() < max_versions) {
    const auto version = read<Elf64_Verdef>(*at);
    if (!version) return out;
    // The base version is the library's own name.
    if ((version->vd_flags & VER_FLG_BASE) == 0)
      if (const auto name = read<Elf64_Verdaux>(*at + version->vd_aux))
        out.push_back(string_at(name->vda_name));
    if (version->vd_next == 0) return out;
    *at += version->vd_next;
  }
  return out;
}

std::vector<elf_image::note> elf_image::notes() const {
  std::vector<note> out;
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_NOTE) continue;
    const auto part = slice(segment.p_offset, segment.p_filesz);
    if (!part) continue;
    const uint64_t align = segment.p_align == 8 ? 8 : 4;
    const auto padded = [align](uint64_t n) { return (n + align - 1) & ~(align - 1); };
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= part->size();) {
      const auto head = read<Elf64_Nhdr>(segment.p_offset + at).value_or(Elf64_Nhdr{});
      const uint64_t owner = at + sizeof head;
      const uint64_t description = padded(owner + head.n_namesz);
      if (description + head.n_descsz > part->size()) break;
      std::string_view name(reinterpret_cast<const char*>(part->data()) + owner, head.n_namesz);
      if (name.ends_with('\0')) name.remove_suffix(1);
      out.push_back({name, head.n_type, part->subspan(description, head.n_descsz)});
      at = padded(description + head.n_descsz);
    }
  }
  return out;
}

// The chains of DT_GNU_HASH end at the last symbol.
std::optional<uint64_t> elf_image::gnu_hash_count() const {
  const auto address = dynamic_value(DT_GNU_HASH);
  const auto offset = address ? offset_of(*address) : std::nullopt;
  if (!offset) return std::nullopt;
  struct header {
    uint32_t n_buckets, first_symbol, bloom_words, bloom_shift;
  };
  const auto head = read<header>(*offset);
  if (!head) return std::nullopt;
  const uint64_t buckets = *offset + sizeof *head + uint64_t{head->bloom_words} * 8;
  const uint64_t chains = buckets + uint64_t{head->n_buckets} * 4;
  if (!slice(buckets, uint64_t{head->n_buckets} * 4)) return std::nullopt;
  uint32_t last = 0;
  for (uint64_t i = 0; i < head->n_buckets; ++i)
    last = std::max(last, read<uint32_t>(buckets + i * 4).value_or(0));
  if (last < head->first_symbol) return head->first_symbol;  // nothing is exported
  for (uint64_t i = last;; ++i) {
    const auto link = read<uint32_t>(chains + (i - head->first_symbol) * 4);
    if (!link) return std::nullopt;
    if ((*link & 1U) != 0) return i + 1;
  }
}

std::optional<uint64_t> elf_image::symbol_count() const {
  if (const auto address = dynamic_value(DT_HASH)) {
    const auto offset = offset_of(*address);
    const auto chains = offset ? read<uint32_t>(*offset + 4) : std::nullopt;
    if (chains) return *chains;
  }
  return gnu_hash_count();
}

checked<std::vector<elf_image::symbol>> elf_image::symbols() const {
  const auto address = dynamic_value(DT_SYMTAB);
  const auto offset = address ? offset_of(*address) : std::nullopt;
  const auto count = symbol_count();
  if (!offset || !count || *count > max_symbols || !slice(*offset, *count * sizeof(Elf64_Sym)))
    return std::unexpected(not_elf("has no readable dynamic symbol table").error());
  std::vector<symbol> out;
  for (uint64_t i = 1; i < *count; ++i) {  // 0 is the null symbol
    const auto entry = read<Elf64_Sym>(*offset + i * sizeof(Elf64_Sym)).value_or(Elf64_Sym{});
    out.push_back({string_at(entry.st_name), static_cast<uint8_t>(ELF64_ST_BIND(entry.st_info)),
                   static_cast<uint8_t>(ELF64_ST_VISIBILITY(entry.st_other)),
                   entry.st_shndx != SHN_UNDEF});
  }
  return out;
}

}  // namespace bitnet::plugin
