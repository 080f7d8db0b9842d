#include "plugin/inspection/elf_image.hpp"

#include <fmt/core.h>

#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <utility>

#include "plugin/codes/text.hpp"

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

// Far more than any linker writes; limits the time for hostile counts.
constexpr std::size_t max_segments = 1024;
constexpr std::size_t max_dynamic_entries = 65536;
constexpr uint64_t max_versions = 65536;  // total of all libraries

std::unexpected<defect> not_elf(const std::string& why) {
  return reject(code::inspect_not_elf, why);
}

std::unexpected<defect> cut_off(uint64_t needs, uint64_t has) {
  return reject(code::inspect_truncated,
                fmt::format("is cut off: it should have at least {} bytes and has {}", needs, has));
}

struct elf_closer {
  void operator()(Elf* e) const { elf_end(e); }
};

}  // namespace

std::string machine_name(uint16_t machine) {
  for (const auto& [value, name] : machines)
    if (value == machine) return std::string(name);
  return fmt::format("machine {}", machine);
}

bool is_for_this_machine(const Elf64_Ehdr& header) {
  return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == this_byte_order &&
         header.e_machine == this_machine;
}

checked<elf_image> elf_image::open(std::span<const std::byte> bytes) {
  if (bytes.empty()) return not_elf("is empty; a shared object was expected");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(std::string_view(ELFMAG, SELFMAG)))
    return not_elf(fmt::format("is not an ELF shared object; it begins with '{}'",
                               printable(text.substr(0, 16))));
  if (bytes.size() < sizeof(Elf64_Ehdr)) return cut_off(sizeof(Elf64_Ehdr), bytes.size());
  elf_image image(bytes);
  if (auto fine = image.read_headers(); !fine) return std::unexpected(std::move(fine.error()));
  return image;
}

checked<void> elf_image::read_headers() {
  const auto header =
      read<Elf64_Ehdr>(0).value_or(Elf64_Ehdr{});  // open() checked that it is there
  if (header.e_ident[EI_CLASS] != ELFCLASS64)
    return reject(code::inspect_machine,
                  fmt::format("is not a 64-bit object; this machine is 64-bit {}",
                              machine_name(this_machine)));
  if (header.e_ident[EI_DATA] != this_byte_order)
    return reject(code::inspect_machine,
                  fmt::format("has another byte order than this machine, which is {}",
                              machine_name(this_machine)));
  if (header.e_machine != this_machine)
    return reject(code::inspect_machine,
                  fmt::format("was built for {}, this machine is {}",
                              machine_name(header.e_machine), machine_name(this_machine)));
  if (header.e_type != ET_DYN)
    return not_elf(fmt::format("is an ELF file but not a shared object (type {})", header.e_type));
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
      header.e_phnum > max_segments)
    return not_elf("has no usable program headers");
  const uint64_t table_bytes = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (!slice(header.e_phoff, table_bytes))
    return cut_off(header.e_phoff + table_bytes, bytes_.size());
  const uint64_t section_bytes = uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_shoff != 0 && !slice(header.e_shoff, section_bytes))
    return cut_off(header.e_shoff + section_bytes, bytes_.size());

  if (auto fine = read_segments(header); !fine) return fine;
  if (auto fine = check_segments(); !fine) return fine;
  if (auto fine = read_dynamic(); !fine) return fine;
  if (auto fine = check_dynamic(); !fine) return fine;
  if ((dynamic_value(DT_FLAGS_1).value_or(0) & DF_1_PIE) != 0)
    return not_elf("is a program, not a shared object");
  return {};
}

checked<void> elf_image::read_segments(const Elf64_Ehdr& header) {
  elf_version(EV_CURRENT);
  // libelf only reads the memory, but its interface is not const.
  const std::unique_ptr<Elf, elf_closer> elf(
      elf_memory(const_cast<char*>(reinterpret_cast<const char*>(bytes_.data())), bytes_.size()));
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF) return not_elf("has a damaged ELF header");
  for (int i = 0; i < header.e_phnum; ++i) {
    GElf_Phdr segment{};
    if (gelf_getphdr(elf.get(), i, &segment) == nullptr)
      return not_elf("has damaged program headers");
    // libelf and the linker must see the table at the same place, whatever sections say.
    const auto same =
        read<Elf64_Phdr>(header.e_phoff + static_cast<uint64_t>(i) * sizeof(Elf64_Phdr));
    if (!same || std::memcmp(&*same, &segment, sizeof segment) != 0)
      return not_elf("has program headers that can be read in two ways");
    if (!slice(segment.p_offset, segment.p_filesz) && segment.p_type == PT_LOAD)
      return cut_off(segment.p_offset + segment.p_filesz, bytes_.size());
    segments_.push_back(segment);
  }
  return {};
}

// The content of an address must not depend on the order in which segments are mapped, nor on which
// of two equal headers a reader uses.
checked<void> elf_image::check_segments() const {
  constexpr uint64_t highest = uint64_t{1} << 47;
  constexpr auto only_one = std::to_array<uint32_t>(
      {PT_DYNAMIC, PT_PHDR, PT_TLS, PT_GNU_STACK, PT_GNU_RELRO, PT_GNU_PROPERTY});
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t end = 0;
  for (const Elf64_Phdr& s : segments_) {
    if (std::ranges::find(only_one, s.p_type) != only_one.end() &&
        std::ranges::count(segments_, s.p_type, &Elf64_Phdr::p_type) > 1)
      return not_elf("has two program headers of a kind of which there can be one");
    if (s.p_type != PT_LOAD) continue;
    if (s.p_vaddr >= highest || s.p_memsz >= highest || s.p_filesz > s.p_memsz ||
        (s.p_vaddr - s.p_offset) % page != 0)
      return not_elf("has a segment that cannot be mapped as it says");
    if (s.p_vaddr / page * page < end)
      return not_elf("has segments that overlap, or that are out of order");
    end = (s.p_vaddr + s.p_memsz + page - 1) / page * page;
  }
  return {};
}

// Reads it as the linker does: by its address, up to DT_NULL.
checked<void> elf_image::read_dynamic() {
  const auto segment = std::ranges::find(segments_, uint32_t{PT_DYNAMIC}, &Elf64_Phdr::p_type);
  if (segment == segments_.end()) return {};
  const auto part = at(segment->p_vaddr, segment->p_filesz);
  if (!part) return not_elf("has a dynamic section that is in no segment which is loaded");
  const auto same = slice(segment->p_offset, segment->p_filesz);
  if (!same || same->data() != part->data())
    return not_elf("has a dynamic section at another place in the file than in memory");
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= part->size(); at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    std::memcpy(&entry, part->data() + at, sizeof entry);
    if (entry.d_tag == DT_NULL) return {};
    if (dynamic_.size() == max_dynamic_entries) break;
    dynamic_.push_back(entry);
  }
  return not_elf("has a dynamic section without an end");
}

checked<void> elf_image::check_dynamic() const {
  constexpr auto many = std::to_array<int64_t>({DT_NEEDED, DT_AUXILIARY, DT_FILTER});
  constexpr auto texts =
      std::to_array<int64_t>({DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_AUXILIARY, DT_FILTER,
                              DT_AUDIT, DT_DEPAUDIT, DT_CONFIG});
  if (dynamic_.empty()) return {};
  std::map<int64_t, uint64_t> seen;
  for (const Elf64_Dyn& entry : dynamic_) {
    // Of duplicates the linker uses the last one, other readers the first.
    const auto [known, is_first] = seen.emplace(entry.d_tag, entry.d_un.d_val);
    if (!is_first && known->second != entry.d_un.d_val &&
        std::ranges::find(many, entry.d_tag) == many.end())
      return not_elf(
          fmt::format("has two different entries of tag {} in its dynamic section", entry.d_tag));
    if (std::ranges::find(texts, entry.d_tag) != texts.end() && !text_at(entry.d_un.d_val))
      return not_elf("names a library or a path outside of its dynamic string table");
  }
  if (strings().empty()) return not_elf("has no readable dynamic string table");
  if (const auto all = read_needed_versions(); !all) return std::unexpected(all.error());
  if (const auto all = read_defined_versions(); !all) return std::unexpected(all.error());
  return {};
}

std::string_view elf_image::strings() const {
  const auto address = dynamic_value(DT_STRTAB);
  const auto size = dynamic_value(DT_STRSZ);
  const auto part = address && size ? at(*address, *size) : std::nullopt;
  if (!part) return {};
  return {reinterpret_cast<const char*>(part->data()), part->size()};
}

std::optional<std::span<const std::byte>> elf_image::slice(uint64_t offset, uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) return std::nullopt;
  return bytes_.subspan(offset, size);
}

std::optional<std::span<const std::byte>> elf_image::at(uint64_t address, uint64_t size) const {
  for (const Elf64_Phdr& segment : segments_)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      if (size > segment.p_filesz - (address - segment.p_vaddr)) return std::nullopt;
      return slice(segment.p_offset + (address - segment.p_vaddr), size);
    }
  return std::nullopt;
}

std::optional<uint64_t> elf_image::dynamic_value(int64_t tag) const {
  for (const Elf64_Dyn& entry : dynamic_)
    if (entry.d_tag == tag) return entry.d_un.d_val;
  return std::nullopt;
}

std::optional<std::string_view> elf_image::text_at(uint64_t index) const {
  const std::string_view all = strings();
  if (index >= all.size()) return std::nullopt;
  const std::string_view rest = all.substr(index);
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

std::vector<std::string_view> elf_image::dynamic_strings(int64_t tag) const {
  std::vector<std::string_view> out;
  for (const Elf64_Dyn& entry : dynamic_)
    if (entry.d_tag == tag) out.push_back(string_at(entry.d_un.d_val));
  return out;
}

// Both version tables are lists of lists, linked by distances; these are not negative, so there are
// no cycles.
checked<std::vector<elf_image::needed_version>> elf_image::read_needed_versions() const {
  const auto damaged = not_elf("has a damaged table of versions that it needs");
  std::vector<needed_version> out;
  const auto address = dynamic_value(DT_VERNEED);
  for (uint64_t at = address.value_or(0); address;) {
    const auto library = read_at<Elf64_Verneed>(at);
    const auto file = library ? text_at(library->vn_file) : std::nullopt;
    if (!file) return damaged;
    for (uint64_t next = at + library->vn_aux;;) {
      const auto version = read_at<Elf64_Vernaux>(next);
      const auto name = version ? text_at(version->vna_name) : std::nullopt;
      if (!name || out.size() == max_versions) return damaged;
      out.push_back({*file, *name, (version->vna_flags & VER_FLG_WEAK) != 0});
      if (version->vna_next == 0) break;
      next += version->vna_next;
    }
    if (library->vn_next == 0) break;
    at += library->vn_next;
  }
  return out;
}

checked<std::vector<std::string_view>> elf_image::read_defined_versions() const {
  const auto damaged = not_elf("has a damaged table of versions that it has");
  std::vector<std::string_view> out;
  const auto address = dynamic_value(DT_VERDEF);
  for (uint64_t at = address.value_or(0); address;) {
    const auto version = read_at<Elf64_Verdef>(at);
    const auto first = version ? read_at<Elf64_Verdaux>(at + version->vd_aux) : std::nullopt;
    const auto name = first ? text_at(first->vda_name) : std::nullopt;
    if (!name || out.size() == max_versions) return damaged;
    // The base version is the library's own name.
    if ((version->vd_flags & VER_FLG_BASE) == 0) out.push_back(*name);
    if (version->vd_next == 0) break;
    at += version->vd_next;
  }
  return out;
}

// open() has read both successfully.
std::vector<elf_image::needed_version> elf_image::needed_versions() const {
  return read_needed_versions().value_or(std::vector<needed_version>());
}

std::vector<std::string_view> elf_image::defined_versions() const {
  return read_defined_versions().value_or(std::vector<std::string_view>());
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
      const auto header = read<Elf64_Nhdr>(segment.p_offset + at).value_or(Elf64_Nhdr{});
      const uint64_t owner = at + sizeof header;
      const uint64_t description = padded(owner + header.n_namesz);
      if (description + header.n_descsz > part->size()) break;
      std::string_view name(reinterpret_cast<const char*>(part->data()) + owner, header.n_namesz);
      if (name.ends_with('\0')) name.remove_suffix(1);
      out.push_back({name, header.n_type, part->subspan(description, header.n_descsz)});
      at = padded(description + header.n_descsz);
    }
  }
  return out;
}

}  // namespace bitnet::plugin
