#include "plugin/inspection/lint.hpp"

#include <fmt/core.h>

#include <utility>

#include "plugin/codes/text.hpp"
#include "plugin/inspection/dependencies.hpp"
#include "plugin/inspection/system_file.hpp"
#include "plugin/inspection/undefined.hpp"
#include "plugin/manifest/manifest.hpp"

namespace bitnet::plugin {
namespace {

checked<manifest> read_manifest(const std::filesystem::path& file) {
  const auto opened = open_any(file);
  if (!opened) return std::unexpected(opened.error());
  const auto text = read_all(*opened, max_manifest_bytes);
  if (!text) return std::unexpected(text.error());
  return parse_manifest(*text, printable(file.string(), 400));
}

void compare(const manifest& m, const inspection& facts, findings& found) {
  constexpr const char* check = "manifest";
  const auto text = [&](const char* field, const std::string& theirs, const std::string& ours) {
    const auto place = m.places.find(field);
    return fmt::format("{}: '{}' is '{}', but the plugin's note says '{}'",
                       place == m.places.end() ? "the manifest" : place->second, field, theirs,
                       ours);
  };
  const auto differs = [&](code c, const char* field, const std::string& theirs,
                           const std::string& ours) {
    if (theirs != ours)
      found.error(check, c, text(field, theirs, ours),
                  "correct the manifest, or build the plugin "
                  "with another note");
  };
  for (const std::string& warning : m.warnings) found.warning(check, code::manifest_field, warning);
  if (facts.note.name.empty()) return;  // the unreadable note is reported already
  const identity& note = facts.note;
  differs(code::inspect_name, "name", m.name, note.name);
  differs(code::manifest_field, "vendor", m.vendor, note.vendor);
  differs(code::manifest_field, "license", m.license, note.license);
  differs(code::inspect_name, "abi.major", std::to_string(m.abi_major),
          std::to_string(note.abi_major));
  differs(code::manifest_field, "abi.min", std::to_string(m.abi_min), std::to_string(note.abi_min));
  differs(code::manifest_field, "abi.max", std::to_string(m.abi_max), std::to_string(note.abi_max));
  if (!note.device_class.empty())
    differs(code::manifest_field, "class", class_name(m.device_class), note.device_class);
  // Packages may have versions for repairs, so a newer file is only a note.
  if (m.version != note.version)
    found.warning(check, code::inspect_name, text("version", m.version, note.version));
}

}  // namespace

checked<lint_result> lint(const std::filesystem::path& file,
                          const std::filesystem::path& manifest_file) {
  const auto opened = open_any(file);
  if (!opened) return std::unexpected(opened.error());
  manifest m;
  checked<manifest> read = m;
  if (!manifest_file.empty()) read = read_manifest(manifest_file);
  if (read) m = std::move(*read);

  examination e = examine_file(*opened, m.packages, m.sha256, m.dependencies);
  lint_result out{std::move(e.facts), std::move(e.found), opened->identity.size_bytes};
  // In a probe the linker finds this in the child; here nothing is executed.
  if (const auto file_of = system_file::open(opened->path))
    examine_undefined(file_of->image(), resolve_libraries(out.facts), out.found);
  if (!read)
    out.found.error("manifest", read.error());
  else if (!manifest_file.empty())
    compare(m, out.facts, out.found);
  if (const auto trusted = open_trusted(file); trusted)
    out.found.ok("trust", "only root and you can write to it");
  else
    out.found.warning("trust", trusted.error().code, trusted.error().reason,
                      trusted.error().advice());
  return out;
}

}  // namespace bitnet::plugin
