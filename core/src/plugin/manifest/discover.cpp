#include "plugin/manifest/discover.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "plugin/codes/text.hpp"
#include "plugin/trust/trust.hpp"
#include "system/limits.hpp"

namespace bitnet::plugin {
namespace {

checked<manifest> read(const std::filesystem::path& file, const std::string& expected_name) {
  std::error_code ignored;
  const std::string shown = printable(file.string(), 400);
  const auto disabled = [&shown](const std::string& how) {
    return std::unexpected(defect{code::manifest_disabled, BITNET_UNAVAILABLE,
                                  fmt::format("disabled: {}{}", shown, how), ""});
  };
  if (std::filesystem::canonical(file, ignored) == "/dev/null")
    return disabled(" is a link to /dev/null");
  const auto opened = open_trusted(file);
  if (!opened) return std::unexpected(opened.error());
  if (opened->identity.size_bytes == 0) return disabled(" is empty");
  auto text = read_all(*opened, max_manifest_bytes);
  if (!text) return std::unexpected(std::move(text.error()));
  auto parsed = parse_manifest(*text, shown);
  if (parsed && parsed->name != expected_name)
    return reject(code::manifest_name, fmt::format("{} describes '{}', but its file name says '{}'",
                                                   shown, parsed->name, expected_name));
  return parsed;
}

// The *.yaml files of a directory, sorted by name.
std::vector<std::filesystem::path> list(const std::filesystem::path& directory,
                                        std::string& result) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) {
    result = error ? fmt::format("cannot be read: {}", limits::reason(error.value())) : "absent";
    return files;
  }
  if (const auto fine = trust_directory(directory); !fine) {
    result = fmt::format("cannot be trusted: {}; {}", fine.error().reason, fine.error().advice());
    return files;
  }
  std::filesystem::directory_iterator at(directory, error);
  uint64_t entries = 0;
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    if (at->path().extension() == ".yaml") files.push_back(at->path());
    if (++entries <= most_directory_entries && files.size() <= most_manifests) continue;
    // Uses none of them, since a choice would depend on the order of the directory.
    result = files.size() > most_manifests
                 ? fmt::format("not used: it has more than {} manifests", most_manifests)
                 : fmt::format("not used: it has more than {} entries", most_directory_entries);
    return {};
  }
  std::ranges::sort(files);
  result = error ? fmt::format("cannot be read: {}", limits::reason(error.value()))
                 : fmt::format("{} manifest{}", files.size(), files.size() == 1 ? "" : "s");
  return files;
}

}  // namespace

discovery discover(const std::vector<std::filesystem::path>& directories) {
  discovery out;
  std::map<std::string, std::filesystem::path> counting;  // by file name; the last directory wins
  for (const auto& directory : directories) {
    searched_directory& searched = out.searched.emplace_back(directory, "");
    for (const auto& file : list(directory, searched.result))
      counting.insert_or_assign(file.filename().string(), file);
  }

  const auto precedence = [&directories](const std::filesystem::path& file) {
    return std::ranges::find(directories, file.parent_path()) - directories.begin();
  };
  std::map<std::string, std::size_t> winners;  // by backend: index in `found`
  for (const auto& [file_name, file] : counting) {
    auto name = name_of_manifest(file);
    if (!name) {
      out.found.push_back(
          {printable(file_name, 64), file, std::unexpected(std::move(name.error()))});
      continue;
    }
    found_manifest entry{*name, file, read(file, *name)};
    if (entry.manifest) {
      const auto [at, first] = winners.try_emplace(*name, out.found.size());
      if (first) {
        out.found.push_back(std::move(entry));
        continue;
      }
      found_manifest& other = out.found[at->second];
      // In the same directory the higher number wins; the map has that order.
      const bool newer = precedence(file) >= precedence(other.file);
      if (newer) at->second = out.found.size();
      found_manifest& loser = newer ? other : entry;
      const found_manifest& winner = newer ? entry : other;
      loser.manifest =
          reject(code::manifest_duplicate, fmt::format("{} describes the same backend and counts",
                                                       printable(winner.file.string(), 400)));
    }
    out.found.push_back(std::move(entry));
  }
  return out;
}

}  // namespace bitnet::plugin
