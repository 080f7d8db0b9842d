#include "plugin/inspection/inspect.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "plugin/codes/text.hpp"
#include "plugin/inspection/dependencies.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/foreign.hpp"
#include "plugin/inspection/linkage.hpp"
#include "plugin/inspection/run_path.hpp"
#include "plugin/inspection/versions.hpp"
#include "plugin/trust/file_map.hpp"
#include "plugin/trust/hash.hpp"

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

// Parses "0.1-4" into major, oldest and newest minor.
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

// Whether `word` is one of the words, which blanks or commas separate.
bool has_word(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" ,"), text.size());
    if (text.substr(0, end) == word) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

std::unexpected<defect> bad_note(const std::string& why) {
  return reject(code::inspect_note, fmt::format("has a damaged identity note: {}", why));
}

// Finds the one bitnet note. A second one is rejected: another reader could use it instead.
checked<identity> find_identity(const elf_image& image, std::string& build_id) {
  std::optional<identity> out;
  for (const elf_image::note& note : image.notes()) {
    if (note.owner == "GNU" && note.type == build_id_note) {
      if (!build_id.empty()) return reject(code::inspect_note, "has two build ids");
      build_id =
          hexadecimal(note.description.first(std::min<std::size_t>(note.description.size(), 32)));
    }
    if (note.owner != BITNET_NOTE_OWNER || note.type != BITNET_NOTE_TYPE) continue;
    if (out) return bad_note("there are two of them");
    auto parsed = parse_identity(note.description);
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

void examine_identity(const elf_image& image, examination& out) {
  auto note = find_identity(image, out.facts.build_id);
  if (!note) return out.found.error("identity", std::move(note.error()));
  out.facts.note = std::move(*note);
  const identity& n = out.facts.note;
  if (n.vendor.find('.') == std::string::npos)
    out.found.warning(
        "identity", code::inspect_note,
        fmt::format("vendor '{}' is not a reversed domain name like org.example", n.vendor),
        "correct it in BITNET_BACKEND_NOTE");
  else
    out.found.ok("identity",
                 fmt::format("{} {} of {}, {}", n.name, n.version, n.vendor, n.license));
  if (out.facts.build_id.empty())
    out.found.warning("build id", code::inspect_note, "has no build id",
                      "link the plugin with --build-id=sha1");
  else
    out.found.ok("build id", out.facts.build_id);
}

std::string some(std::vector<std::string> names) {
  const std::size_t n = names.size();
  names.resize(std::min<std::size_t>(n, 5));
  return fmt::format("{} symbol{}: {}{}", n, n == 1 ? "" : "s", join(names, ", "),
                     n > 5 ? ", ..." : "");
}

// A plugin may export one entry per supported major and nothing else: another export could replace
// a symbol of the program or pin the library.
void examine_exports(const elf_image& image, examination& out) {
  constexpr const char* check = "exports";
  auto symbols = image.symbols();
  if (!symbols) return out.found.error(check, std::move(symbols.error()));
  std::vector<std::string> strangers;
  std::vector<std::string> unique;
  std::optional<uint32_t> other;
  bool has_entry = false;
  for (const elf_image::symbol& symbol : *symbols) {
    if (!symbol.defined || symbol.binding == STB_LOCAL) continue;
    if (symbol.visibility == STV_HIDDEN || symbol.visibility == STV_INTERNAL) continue;
    const std::string name = printable(symbol.name, 128);
    out.facts.exports.push_back(name);
    if (symbol.binding == STB_GNU_UNIQUE) unique.push_back(name);
    if (symbol.name == BITNET_BACKEND_ENTRY_NAME)
      has_entry = true;
    else if (const auto major = entry_major(symbol.name))
      other = major;
    else if (symbol.binding != STB_GNU_UNIQUE)
      strangers.push_back(name);
  }
  if (!unique.empty())
    out.found.error(
        check, code::inspect_exports,
        fmt::format("exports unique (STB_GNU_UNIQUE) {}", some(unique)),
        "build the plugin with -fno-gnu-unique and the version script bitnet-backend.map");
  if (!has_entry && other)
    out.found.error(check, other_major(out.facts.note.name, *other));
  else if (!has_entry)
    out.found.error(check, code::inspect_no_entry,
                    "exports no entry symbol " BITNET_BACKEND_ENTRY_NAME);
  if (!strangers.empty())
    out.found.error(check, code::inspect_exports,
                    fmt::format("may export " BITNET_BACKEND_ENTRY_NAME " only, but exports {}",
                                some(strangers)));
  if (has_entry && unique.empty() && strangers.empty())
    out.found.ok(check, "the entry " BITNET_BACKEND_ENTRY_NAME " only");
}

}  // namespace

checked<identity> parse_identity(std::span<const std::byte> description) {
  std::string_view rest(reinterpret_cast<const char*>(description.data()), description.size());
  std::map<std::string_view, std::string_view> fields;
  bool first = true;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\0');
    if (end == std::string_view::npos) return bad_note("its last field does not end");
    const std::string_view field = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (first && field != "schema=1")
      return bad_note(fmt::format("expected 'schema=1' first, found '{}'", printable(field, 64)));
    first = false;
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos)
      return bad_note(fmt::format("'{}' has no '='", printable(field, 64)));
    if (field.size() > max_field_bytes) return bad_note("a field has more than 256 bytes");
    if (!fields.emplace(field.substr(0, equals), field.substr(equals + 1)).second)
      return bad_note(
          fmt::format("key '{}' is there twice", printable(field.substr(0, equals), 64)));
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
      return bad_note(fmt::format("key '{}' is missing", key));
    *value = printable(found->second, max_field_bytes);
  }
  if (const auto found = fields.find("compiler"); found != fields.end())
    out.compiler = printable(found->second, max_field_bytes);
  if (const auto found = fields.find("class"); found != fields.end())
    out.device_class = printable(found->second, max_field_bytes);
  if (const auto found = fields.find("flags"); found != fields.end())
    out.unloadable = has_word(found->second, "unloadable");
  if (!is_backend_name(out.name))
    return bad_note(fmt::format("'{}' is not a backend name", out.name));
  if (!parse_range(out.abi, out))
    return bad_note(fmt::format("'{}' is not an ABI range like " BITNET_ABI_RANGE, out.abi));
  return out;
}

void read_needs(const elf_image& image, inspection& out) {
  for (const auto name : image.dynamic_strings(DT_NEEDED)) out.needed.push_back(printable(name));
  out.run_path = run_path_of(image);
  out.run_path_is_new = image.dynamic_value(DT_RUNPATH).has_value();
  for (const auto& [library, version, weak] : image.needed_versions())
    out.versions.push_back({printable(library), printable(version), weak});
}

defect other_major(const std::string& name, uint32_t major) {
  const std::string theirs = std::to_string(major);
  const std::string ours = std::to_string(BITNET_ABI_MAJOR);
  return {code::abi_major, BITNET_INCOMPATIBLE,
          fmt::format("backend {} speaks ABI major {}, this core speaks {}", name, theirs, ours),
          fmt::format("install a bitnet that speaks {} or a backend for {}", theirs, ours)};
}

defect other_minor(const std::string& name, uint32_t low, uint32_t high) {
  const auto range = [](uint32_t from, uint32_t to) {
    return from == to ? fmt::format("{}.{}", BITNET_ABI_MAJOR, from)
                      : fmt::format("{0}.{1} to {0}.{2}", BITNET_ABI_MAJOR, from, to);
  };
  const std::string ours = range(oldest_minor, BITNET_ABI_MINOR), theirs = range(low, high);
  if (low > BITNET_ABI_MINOR)
    return {code::abi_minor, BITNET_INCOMPATIBLE,
            fmt::format("backend {} speaks ABI {}, this core speaks {}", name, theirs, ours),
            "upgrade bitnet or install an older backend"};
  return {code::abi_minor, BITNET_INCOMPATIBLE,
          fmt::format("backend {} speaks ABI {}, this core speaks {}", name, theirs, ours),
          fmt::format("upgrade the backend, or build it again with the SDK of this bitnet, whose "
                      "contract is ABI {}",
                      ours)};
}

checked<void> check_abi(const identity& note) {
  if (note.abi_major != BITNET_ABI_MAJOR)
    return std::unexpected(other_major(note.name, note.abi_major));
  if (note.abi_min > BITNET_ABI_MINOR || note.abi_max < oldest_minor)
    return std::unexpected(other_minor(note.name, note.abi_min, note.abi_max));
  return {};
}

examination examine(std::span<const std::byte> file) {
  examination out;
  const auto image = elf_image::open(file);
  if (!image) {
    out.found.error("format", image.error());
    return out;
  }
  out.found.ok("format", "a whole ELF shared object for this machine");
  examine_identity(*image, out);
  examine_exports(*image, out);
  examine_linkage(*image, out.facts, out.found);
  examine_foreign(*image, out.found);
  read_needs(*image, out.facts);
  return out;
}

examination examine_file(const trusted_file& file,
                         const std::map<std::string, std::string>& packages,
                         const std::string& sha256,
                         const std::map<std::string, std::string>& hashes) {
  examination out;
  const auto bytes = file_map::open(file.fd.get(), file.identity.size_bytes);
  if (!bytes) {
    out.found.error("format", code::inspect_not_elf, "cannot be mapped into memory");
    return out;
  }
  out = examine(bytes->bytes());
  if (!out.facts.note.name.empty()) {
    if (auto fine = check_abi(out.facts.note); !fine)
      out.found.error("abi", std::move(fine.error()));
    else
      out.found.ok("abi", out.facts.note.abi);
  }
  // It reads the whole file, so only if a hash is given.
  if (!sha256.empty()) examine_hash(bytes->bytes(), sha256, out.found);
  examine_run_path(out.facts, out.found);
  const std::vector<needed_library> libraries = resolve_libraries(out.facts);
  examine_dependencies(libraries, packages, hashes, out.found);
  examine_versions(out.facts, libraries, out.found);
  return out;
}

checked<inspection> inspect(std::span<const std::byte> file) {
  examination out = examine(file);
  if (const defect* bad = out.found.first_error()) return std::unexpected(*bad);
  return std::move(out.facts);
}

checked<inspection> inspect_file(const trusted_file& file,
                                 const std::map<std::string, std::string>& packages,
                                 const std::string& sha256,
                                 const std::map<std::string, std::string>& hashes) {
  examination out = examine_file(file, packages, sha256, hashes);
  const defect* bad = out.found.first_error();
  if (bad == nullptr) return std::move(out.facts);
  defect named = *bad;
  // Messages about the ABI already begin with the backend's name.
  if (!named.reason.starts_with("backend "))
    named.reason = fmt::format("{} {}", printable(file.path.string(), 400), named.reason);
  return std::unexpected(std::move(named));
}

}  // namespace bitnet::plugin
