#include "plugin/lint.hpp"

#include <fmt/core.h>

#include <utility>

#include "plugin/manifest.hpp"
#include "plugin/text.hpp"

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
  const auto differs = [&](const char* what, const std::string& theirs, const std::string& ours) {
    found.error(check, code::inspect_name,
                fmt::format("{} is '{}', but the manifest says '{}'", what, ours, theirs),
                "correct the manifest");
  };
  for (const std::string& warning : m.warnings) found.warning(check, code::manifest_field, warning);
  if (facts.note.name.empty()) return;  // its note cannot be read: said already
  if (m.name != facts.note.name) differs("its name", m.name, facts.note.name);
  if (m.version != facts.note.version)
    found.warning(check, code::inspect_name,
                  fmt::format("its version is '{}', but the manifest says '{}'", facts.note.version,
                              m.version));
  if (m.abi_major != facts.note.abi_major)
    differs("its ABI major", std::to_string(m.abi_major), std::to_string(facts.note.abi_major));
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
  if (!read)
    out.found.error("manifest", read.error());
  else if (!manifest_file.empty())
    compare(m, out.facts, out.found);
  if (const auto trusted = open_trusted(file); trusted)
    out.found.ok("trust", "nobody but root and you can write to it");
  else
    out.found.warning("trust", trusted.error().code, trusted.error().reason,
                      trusted.error().advice());
  return out;
}

}  // namespace bitnet::plugin
