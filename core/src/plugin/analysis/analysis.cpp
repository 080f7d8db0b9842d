#include "plugin/analysis/analysis.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/environment.hpp"
#include "bitnet/abi/note.h"
#include "plugin/codes/text.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/run_path.hpp"
#include "plugin/inspection/versions.hpp"
#include "plugin/manifest/discover.hpp"
#include "plugin/trust/file_map.hpp"
#include "plugin/trust/hash.hpp"

namespace bitnet::plugin {
namespace {

constexpr std::string_view entry_start = "bitnet_backend_abi";

// Kinds of files that users take for shared objects, by their first bytes, with advice.
struct other_kind {
  std::string_view start, what, hint;
};
constexpr std::string_view no_archive =
    "an archive has no dependencies and no entry: name the shared object that it was linked into";
constexpr auto other_kinds = std::to_array<other_kind>({
    {"!<arch>\n", "a static archive (ar)", no_archive},
    {"!<thin>\n", "a thin static archive (ar)", no_archive},
    {"MZ", "a library or program of Windows (PE)", "name an ELF shared object"},
    {"\xcf\xfa\xed\xfe", "a library or program of macOS (Mach-O)", "name an ELF shared object"},
    {"\xce\xfa\xed\xfe", "a library or program of macOS (Mach-O)", "name an ELF shared object"},
    {"\xca\xfe\xba\xbe", "a universal library of macOS (Mach-O)", "name an ELF shared object"},
    {"BC\xc0\xde", "LLVM bitcode", "name the shared object that it was linked into"},
    {"/* GNU ld script", "a linker script", "name the shared object that it stands for"},
    {"GGUF", "a model (GGUF)", "`bitnet inspect` reads models"},
});

std::unexpected<defect> no_library(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.empty()) return reject(code::inspect_not_elf, "is empty, not a shared object");
  for (const other_kind& kind : other_kinds)
    if (text.starts_with(kind.start))
      return reject(code::inspect_not_elf, fmt::format("is {}, not a shared object", kind.what),
                    std::string(kind.hint));
  return reject(code::inspect_not_elf,
                fmt::format("is not an ELF shared object; it begins with '{}'",
                            printable(text.substr(0, 16))),
                "name a shared object such as libllama.so");
}

// Explains why an ELF file is no shared object.
std::unexpected<defect> other_type(uint16_t type) {
  const std::string what = type == ET_REL    ? "an object file that is not linked yet"
                           : type == ET_EXEC ? "a program"
                           : type == ET_CORE ? "a core dump"
                                             : fmt::format("an ELF file of type {}", type);
  return reject(code::inspect_not_elf, fmt::format("is {}, not a shared object", what),
                "name a shared object such as libllama.so");
}

// Keeps the entry of the newest major: "bitnet_backend_abi1" wins over "bitnet_backend_abi0".
void note_entry(std::string_view name, library_analysis& out) {
  if (!name.starts_with(entry_start)) return;
  const std::string_view major = name.substr(entry_start.size());
  if (major.empty() || major.size() > 9 ||
      !std::ranges::all_of(major, [](char c) { return c >= '0' && c <= '9'; }))
    return;
  if (out.entry.size() < name.size() || (out.entry.size() == name.size() && out.entry < name))
    out.entry = name;
}

std::vector<named_symbol> names_of(const any_elf& file, library_analysis& out) {
  std::vector<named_symbol> names;
  for (const any_elf::symbol& one : file.dynamic_symbols()) {
    names.push_back({one.name, one.defined, one.exported});
    if (one.exported) note_entry(one.name, out);
  }
  const auto table = file.table_symbols();
  out.stripped = !table;
  if (table)
    for (const any_elf::symbol& one : *table) names.push_back({one.name, one.defined});
  std::ranges::sort(names, {}, &named_symbol::name);
  std::vector<named_symbol> once;
  for (const named_symbol& one : names) {
    if (once.empty() || once.back().name != one.name) once.push_back({one.name});
    once.back().defined |= one.defined;
    once.back().exported |= one.exported;
  }
  out.symbols = once.size();
  out.exported = static_cast<uint64_t>(std::ranges::count(once, true, &named_symbol::exported));
  return once;
}

// The x86-64 psABI level from the property GNU_PROPERTY_X86_ISA_1_NEEDED.
std::string baseline_of(std::span<const std::byte> properties, bool wide, bool big_endian) {
  constexpr uint64_t needed = 0xc0008002;
  const uint64_t align = wide ? 8 : 4;
  for (uint64_t at = 0; at + 8 <= properties.size();) {
    const uint64_t kind = any_elf::number_in(properties, at, 4, big_endian);
    const uint64_t bytes = any_elf::number_in(properties, at + 4, 4, big_endian);
    if (kind == needed && bytes == 4) {
      const uint64_t levels = any_elf::number_in(properties, at + 8, 4, big_endian);
      if ((levels & 8U) != 0) return "x86-64-v4";
      if ((levels & 4U) != 0) return "x86-64-v3";
      if ((levels & 2U) != 0) return "x86-64-v2";
      if ((levels & 1U) != 0) return "x86-64";
    }
    at += 8 + ((bytes + align - 1) & ~(align - 1));
  }
  return "";
}

void read_notes(const any_elf& file, library_analysis& out) {
  constexpr uint32_t build_id = 3;  // NT_GNU_BUILD_ID
  constexpr uint32_t property = 5;  // NT_GNU_PROPERTY_TYPE_0
  constexpr std::size_t most_id_bytes = 32;
  for (const any_elf::note& note : file.notes()) {
    if (note.owner == "GNU" && note.type == build_id && out.build_id.empty())
      out.build_id =
          hexadecimal(note.description.first(std::min(note.description.size(), most_id_bytes)));
    const bool is_x86 = file.machine() == EM_X86_64 || file.machine() == EM_386;
    if (note.owner == "GNU" && note.type == property && is_x86 && out.cpu_baseline.empty())
      out.cpu_baseline = baseline_of(note.description, file.is_wide(), file.is_big_endian());
    if (note.owner != BITNET_NOTE_OWNER || note.type != BITNET_NOTE_TYPE || out.note) continue;
    auto parsed = parse_identity(note.description);
    if (parsed)
      out.note = std::move(*parsed);
    else
      out.problems.push_back(std::move(parsed.error()));
  }
}

// {2, 36} for "2.36"; empty if it is no list of numbers.
std::vector<uint32_t> numbers_of(std::string_view text) {
  std::vector<uint32_t> out;
  while (!text.empty()) {
    uint32_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return {};
    out.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    if (text.starts_with('.'))
      text.remove_prefix(1);
    else if (!text.empty())
      return {};
  }
  return out;
}

void read_versions(const any_elf& file, library_analysis& out) {
  // glibc 2.36 provides this version to show that it supports DT_RELR.
  constexpr std::pair relr{std::string_view("GLIBC_ABI_DT_RELR"), std::string_view("GLIBC_2.36")};
  for (std::string_view version : file.needed_versions()) {
    if (version == relr.first) version = relr.second;
    const std::size_t split = version.rfind('_');
    if (split == std::string_view::npos || split == 0) continue;
    const std::string family = printable(version.substr(0, split), 64);
    const std::string_view number = version.substr(split + 1);
    if (number.size() > 32 || numbers_of(number).empty()) continue;
    const auto [known, is_first] = out.versions.emplace(family, number);
    if (!is_first && numbers_of(known->second) < numbers_of(number)) known->second = number;
  }
}

// "x" for "libx.so.12"
std::string_view stem_of(std::string_view library) {
  constexpr std::string_view start = "lib";
  const std::size_t end = library.find(".so");
  if (!library.starts_with(start) || end == std::string_view::npos) return {};
  return library.substr(start.size(), end - start.size());
}

void find_accelerators(library_analysis& out) {
  constexpr auto& interfaces = foreign_names::accelerator_libraries;
  for (const std::string& name : out.needed)
    if (std::ranges::find(interfaces, stem_of(name)) != interfaces.end())
      out.accelerators.push_back(name);
}

// BitNet-rs's text on the backend, if the symbols show it.
std::string inference_of(const library_analysis& a) {
  const auto count = [&](symbol_group group) {
    return a.groups[static_cast<std::size_t>(group)].count;
  };
  if (a.note)
    return fmt::format(
        "bitnet backend {}{}", a.note->name,
        a.note->device_class.empty() ? "" : fmt::format(" of class {}", a.note->device_class));
  if (!a.accelerators.empty()) return fmt::format("GPU backend, by {}", join(a.accelerators, ", "));
  if (count(symbol_group::accelerator) != 0)
    return std::string(foreign_names::accelerator_inference);
  if (count(symbol_group::bitnet) + count(symbol_group::llama) +
          count(symbol_group::quantization) !=
      0)
    return "CPU-only backend";
  return "no backend, by its symbols";
}

// Finds faults that prevent any program on this machine from loading it.
void judge(std::span<const std::byte> file, library_analysis& out) {
  const auto image = elf_image::open(file);
  out.for_this_machine = image || image.error().code != code::inspect_machine;
  if (!image) out.problems.push_back(image.error());
}

}  // namespace

checked<library_analysis> analyze(std::span<const std::byte> file, uint64_t most_names) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(std::string_view(ELFMAG, SELFMAG))) return no_library(file);
  const auto elf = any_elf::open(file);
  if (!elf) return std::unexpected(elf.error());
  if (elf->type() != ET_DYN) return other_type(elf->type());
  if ((elf->dynamic_value(DT_FLAGS_1).value_or(0) & DF_1_PIE) != 0) return other_type(ET_EXEC);

  library_analysis out;
  out.size_bytes = file.size();
  out.bits = elf->is_wide() ? 64 : 32;
  out.big_endian = elf->is_big_endian();
  out.machine = machine_name(elf->machine());
  if (const auto names = elf->dynamic_strings(DT_SONAME); !names.empty())
    out.soname = printable(names.front());
  for (const std::string_view name : elf->dynamic_strings(DT_NEEDED))
    out.needed.push_back(printable(name));

  const std::vector<named_symbol> names = names_of(*elf, out);
  out.groups = group_symbols(names, most_names);
  out.formats = formats_in(names);
  read_notes(*elf, out);
  read_versions(*elf, out);
  find_accelerators(out);
  out.inference = inference_of(out);
  judge(file, out);
  return out;
}

namespace {

void add_errors(const findings& found, library_analysis& out) {
  for (const finding& one : found.all())
    if (one.level == finding::level_type::error) out.problems.push_back(one.what);
}

// For a plugin, all reasons why the loader would reject it; for other libraries, missing
// dependencies.
void judge_on_disk(const trusted_file& file, std::span<const std::byte> bytes,
                   library_analysis& out) {
  const auto image = elf_image::open(bytes);
  if (!image) return;  // the problem is listed already
  inspection facts;
  read_needs(*image, facts);
  std::error_code ignored;
  const auto whole = std::filesystem::canonical(file.path, ignored);
  out.libraries = out.note ? resolve_libraries(facts)
                           : resolve_libraries(facts, {.origin = whole.parent_path().string(),
                                                       .follows_untrusted = true});
  out.libraries_known = true;
  if (out.note) {
    add_errors(examine_file(file, {}).found, out);
    return;
  }
  findings found;
  std::vector<needed_library> plain = out.libraries;
  // Only the loader of plugins requires trusted libraries.
  for (needed_library& one : plain)
    if (one.fault && code_text(one.fault->code).starts_with("BN-T-")) one.fault.reset();
  examine_dependencies(plain, {}, {}, found);
  examine_versions(facts, plain, found);
  add_errors(found, out);
}

// Finds the installed manifest of backend `name` that names this file.
void find_manifest(const std::filesystem::path& file, const std::string& name,
                   library_analysis& out) {
  auto folders = environment::system_manifest_directories();
  for (const auto& [path, named_by] : environment::user_manifest_directories())
    folders.push_back(path);
  for (const found_manifest& one : discover(folders).found) {
    if (!one.manifest || one.manifest->name != name) continue;
    const auto library =
        locate_library(one.manifest->library, environment::backend_directories(one.file));
    std::error_code error;
    if (!library || !std::filesystem::equivalent(*library, file, error) || error) continue;
    out.manifest = one.file;
    out.manifest_license = printable(one.manifest->license);
  }
}

}  // namespace

checked<library_analysis> analyze_file(const std::filesystem::path& file, uint64_t most_names) {
  const auto opened = open_any(file);
  if (!opened) return std::unexpected(opened.error());
  const auto map = file_map::open(opened->fd.get(), opened->identity.size_bytes);
  if (!map)
    return reject(code::inspect_not_elf,
                  fmt::format("{} cannot be mapped into memory", printable(file.string(), 400)));
  auto out = analyze(map->bytes(), most_names);
  if (!out) {
    out.error().reason = fmt::format("{} {}", printable(file.string(), 400), out.error().reason);
    return out;
  }
  if (out->for_this_machine) judge_on_disk(*opened, map->bytes(), *out);
  if (out->note) find_manifest(file, out->note->name, *out);
  return out;
}

}  // namespace bitnet::plugin
