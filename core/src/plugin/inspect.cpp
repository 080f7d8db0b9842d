#include "plugin/inspect.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "plugin/dependencies.hpp"
#include "plugin/elf_image.hpp"
#include "plugin/text.hpp"

namespace bitnet::plugin {
namespace {

constexpr std::string_view entry_prefix = "bitnet_backend_abi";
constexpr uint32_t build_id_note = 3;  // NT_GNU_BUILD_ID
constexpr std::size_t max_field_bytes = 256;

std::optional<uint32_t> decimal(std::string_view text) {
  uint32_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size())
    return std::nullopt;
  return value;
}

// "0.1-4" into major, oldest and newest minor.
bool parse_range(std::string_view text, identity& out) {
  const std::size_t dot = text.find('.');
  const std::size_t dash = text.find('-');
  if (dot == std::string_view::npos || dash == std::string_view::npos || dash < dot) return false;
  const auto major = decimal(text.substr(0, dot));
  const auto low = decimal(text.substr(dot + 1, dash - dot - 1));
  const auto high = decimal(text.substr(dash + 1));
  if (!major || !low || !high || *low > *high) return false;
  out.abi_major = *major;
  out.abi_min = *low;
  out.abi_max = *high;
  return true;
}

std::unexpected<defect> bad_note(const std::string& why) {
  return reject(code::inspect_note, "has a damaged identity note: " + why);
}

checked<identity> parse_note(std::span<const std::byte> description) {
  std::string_view rest(reinterpret_cast<const char*>(description.data()), description.size());
  std::map<std::string_view, std::string_view> fields;
  bool first = true;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\0');
    if (end == std::string_view::npos) return bad_note("its last field does not end");
    const std::string_view field = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (first && field != "schema=1")
      return bad_note("expected 'schema=1' first, found '" + printable(field, 64) + "'");
    first = false;
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos)
      return bad_note("'" + printable(field, 64) + "' has no '='");
    if (field.size() > max_field_bytes) return bad_note("a field has more than 256 bytes");
    if (!fields.emplace(field.substr(0, equals), field.substr(equals + 1)).second)
      return bad_note("key '" + printable(field.substr(0, equals), 64) + "' is there twice");
  }
  identity out;
  struct required {
    std::string_view key;
    std::string* value;
  };
  for (const auto& [key, value] : {required{"abi", &out.abi},
                                   {"name", &out.name},
                                   {"version", &out.version},
                                   {"vendor", &out.vendor},
                                   {"license", &out.license}}) {
    const auto found = fields.find(key);
    if (found == fields.end() || found->second.empty())
      return bad_note("key '" + std::string(key) + "' is missing");
    *value = printable(found->second, max_field_bytes);
  }
  if (const auto found = fields.find("compiler"); found != fields.end())
    out.compiler = printable(found->second, max_field_bytes);
  if (!is_backend_name(out.name)) return bad_note("'" + out.name + "' is not a backend name");
  if (!parse_range(out.abi, out))
    return bad_note("'" + out.abi + "' is not an ABI range like " BITNET_ABI_RANGE);
  return out;
}

// One note of ours; a second could say something else to another reader.
checked<identity> find_identity(const elf_image& image, std::string& build_id) {
  std::optional<identity> out;
  for (const elf_image::note& note : image.notes()) {
    if (note.owner == "GNU" && note.type == build_id_note) {
      constexpr std::string_view digits = "0123456789abcdef";
      build_id.clear();
      for (const std::byte b :
           note.description.first(std::min<std::size_t>(note.description.size(), 32))) {
        build_id += digits[std::to_integer<unsigned>(b) >> 4];
        build_id += digits[std::to_integer<unsigned>(b) & 15];
      }
    }
    if (note.owner != BITNET_NOTE_OWNER || note.type != BITNET_NOTE_TYPE) continue;
    if (out) return bad_note("there are two of them");
    auto parsed = parse_note(note.description);
    if (!parsed) return parsed;
    out = std::move(*parsed);
  }
  if (!out)
    return reject(code::inspect_no_note, "has no identity note (section " BITNET_NOTE_SECTION
                                         "), so it is no bitnet backend");
  return *out;
}

// The major of "bitnet_backend_abi7".
std::optional<uint32_t> entry_major(std::string_view symbol) {
  if (!symbol.starts_with(entry_prefix)) return std::nullopt;
  return decimal(symbol.substr(entry_prefix.size()));
}

// A plugin may export one entry for each major that it speaks, and nothing else: whatever else it
// exported could replace a symbol of the program or pin the library for ever.
checked<void> check_exports(const elf_image& image, inspection& out) {
  auto symbols = image.symbols();
  if (!symbols) return std::unexpected(std::move(symbols.error()));
  std::vector<std::string> strangers;
  std::vector<std::string> unique;
  std::optional<uint32_t> other;
  bool has_entry = false;
  for (const elf_image::symbol& symbol : *symbols) {
    if (!symbol.defined || symbol.binding == STB_LOCAL) continue;
    if (symbol.visibility == STV_HIDDEN || symbol.visibility == STV_INTERNAL) continue;
    const std::string name = printable(symbol.name, 128);
    out.exports.push_back(name);
    if (symbol.binding == STB_GNU_UNIQUE) unique.push_back(name);
    if (symbol.name == BITNET_BACKEND_ENTRY_NAME)
      has_entry = true;
    else if (const auto major = entry_major(symbol.name))
      other = major;
    else
      strangers.push_back(name);
  }
  const auto some = [](std::vector<std::string> names) {
    const std::size_t n = names.size();
    names.resize(std::min<std::size_t>(n, 5));
    return std::to_string(n) + (n == 1 ? " symbol: " : " symbols: ") + join(names, ", ") +
           (n > 5 ? ", ..." : "");
  };
  if (!unique.empty())
    return reject(
        code::inspect_exports, "exports unique (STB_GNU_UNIQUE) " + some(unique),
        "build the plugin with -fno-gnu-unique and the version script bitnet-backend.map");
  if (!has_entry && other) return std::unexpected(other_major(out.note.name, *other));
  if (!has_entry)
    return reject(code::inspect_no_entry, "exports no entry symbol " BITNET_BACKEND_ENTRY_NAME);
  if (!strangers.empty())
    return reject(code::inspect_exports,
                  "may export " BITNET_BACKEND_ENTRY_NAME " only, but exports " + some(strangers));
  return {};
}

struct unmapper {
  std::size_t size = 0;
  void operator()(const std::byte* p) const { ::munmap(const_cast<std::byte*>(p), size); }
};

}  // namespace

defect other_major(const std::string& name, uint32_t major) {
  const std::string theirs = std::to_string(major);
  const std::string ours = std::to_string(BITNET_ABI_MAJOR);
  return {code::abi_major, BITNET_INCOMPATIBLE,
          "backend " + name + " speaks ABI major " + theirs + ", this core speaks " + ours,
          "install a bitnet that speaks " + theirs + " or a backend for " + ours};
}

defect other_minor(const std::string& name, uint32_t low, uint32_t high) {
  const auto version = [](uint32_t minor) {
    return std::to_string(BITNET_ABI_MAJOR) + "." + std::to_string(minor);
  };
  if (low > BITNET_ABI_MINOR)
    return {code::abi_minor, BITNET_INCOMPATIBLE,
            "backend " + name + " needs ABI " + version(low) + " or newer, this core has " +
                version(BITNET_ABI_MINOR),
            "upgrade bitnet or install an older backend"};
  return {code::abi_minor, BITNET_INCOMPATIBLE,
          "backend " + name + " speaks ABI " + version(low) + " to " + version(high) +
              ", this core has " + version(BITNET_ABI_MINOR),
          "upgrade the backend"};
}

checked<void> check_abi(const identity& note) {
  if (note.abi_major != BITNET_ABI_MAJOR)
    return std::unexpected(other_major(note.name, note.abi_major));
  // This core speaks every minor from 0 to its own.
  if (note.abi_min > BITNET_ABI_MINOR)
    return std::unexpected(other_minor(note.name, note.abi_min, note.abi_max));
  return {};
}

checked<inspection> inspect(std::span<const std::byte> file) {
  const auto image = elf_image::open(file);
  if (!image) return std::unexpected(image.error());
  inspection out;
  auto note = find_identity(*image, out.build_id);
  if (!note) return std::unexpected(std::move(note.error()));
  out.note = std::move(*note);
  if (auto fine = check_exports(*image, out); !fine)
    return std::unexpected(std::move(fine.error()));
  for (const auto name : image->dynamic_strings(DT_NEEDED)) out.needed.push_back(printable(name));
  for (const int64_t tag : {DT_RUNPATH, DT_RPATH})
    for (std::string_view list : image->dynamic_strings(tag))
      while (!list.empty()) {
        const std::size_t end = std::min(list.find(':'), list.size());
        out.run_path.emplace_back(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
      }
  return out;
}

checked<inspection> inspect_file(const trusted_file& file,
                                 const std::map<std::string, std::string>& packages) {
  const std::size_t size = file.identity.size_bytes;
  // Mapped, because a plugin may hold hundreds of megabytes of device code. Only root and the user
  // can shorten the file meanwhile.
  void* map = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  if (map == MAP_FAILED)
    return reject(code::inspect_not_elf, printable(file.path.string(), 400) + " cannot be mapped");
  const std::unique_ptr<const std::byte, unmapper> bytes(static_cast<const std::byte*>(map),
                                                         {size});
  const auto named = [&file](defect d) {
    // The texts about the ABI begin with the backend's name.
    if (!d.reason.starts_with("backend "))
      d.reason = printable(file.path.string(), 400) + " " + d.reason;
    return std::unexpected(std::move(d));
  };
  auto out = inspect({bytes.get(), size});
  if (!out) return named(std::move(out.error()));
  if (auto fine = check_abi(out->note); !fine) return named(std::move(fine.error()));

  const auto missing = missing_libraries(*out, file.path.parent_path());
  if (missing.empty()) return out;
  std::vector<std::string> install;
  for (const std::string& library : missing)
    if (const auto known = packages.find(library); known != packages.end())
      install.push_back(known->second);
  return std::unexpected(
      defect{code::inspect_dependency, BITNET_UNAVAILABLE,
             "needs libraries that this machine does not have: " + join(missing, ", "),
             install.empty() ? "" : "install " + join(install, " ")});
}

}  // namespace bitnet::plugin
