#include "crossval/discovery.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

namespace bitnet::host::crossval {
namespace {

namespace fs = std::filesystem;

struct tier_folder {
  uint32_t tier;
  std::string_view below_root;
};
// BitNet-rs's three tiers: folders of build outputs and installs; folders where CMake puts the
// libraries of bitnet.cpp, which contains llama.cpp, and of llama.cpp of 2024; all others.
constexpr auto tiers = std::to_array<tier_folder>({
    {1, "build/3rdparty/llama.cpp/build/bin"},
    {1, "build/lib"},
    {1, "build/bin"},
    {2, "build/3rdparty/llama.cpp/src"},
    {2, "build/3rdparty/llama.cpp/ggml/src"},
    {2, "3rdparty/llama.cpp/src"},
    {2, "3rdparty/llama.cpp/ggml/src"},
    {2, "build/src"},
    {2, "build/ggml/src"},
    {3, "build"},
    {3, "lib"},
});
constexpr std::string_view wanted = "libllama.so";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}
bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string why_none(const fs::path& folder) {
  if (!is_folder(folder)) return "no such folder";
  if (is_file(folder / "libllama.a"))
    return "has libllama.a, which cannot be loaded: build with -DBUILD_SHARED_LIBS=ON";
  if (is_file(folder / "libllama.dylib")) return "has libllama.dylib, which is for macOS";
  return "no libllama.so";
}

std::vector<searched_folder> folders_of(const places& where) {
  if (!where.library_folder.empty()) return {{where.library_folder, 0, ""}};
  std::vector<searched_folder> out;
  if (where.root.empty()) return out;
  for (const tier_folder& one : tiers)
    out.push_back({(fs::path(where.root) / one.below_root).string(), one.tier, ""});
  return out;
}

// Returns the folders with ggml libraries, the library's own first.
std::vector<std::string> folders_to_load_from(const std::string& own,
                                              const std::vector<searched_folder>& all) {
  std::vector<std::string> out = {own};
  for (const searched_folder& one : all)
    if (one.path != own && !ggml_libraries({one.path}).empty()) out.push_back(one.path);
  return out;
}

// Returns why `library` is rejected; "": it is accepted.
std::string examine(const std::string& library, const searched_folder& in,
                    const std::vector<searched_folder>& all, const inspector& inspect, build& to) {
  if (std::string why = distrusted(library); !why.empty()) return why;
  const auto facts = inspect(library);
  if (!facts) return facts.error();
  if (!facts->llama) return "libllama.so defines no llama_ functions";
  to = {library, folders_to_load_from(in.path, all), in.tier, facts->i2_s, facts->cuda};
  for (const std::string& other : ggml_libraries(to.folders)) {
    if (std::string why = distrusted(other); !why.empty()) return why;
    const auto more = inspect(other);
    if (!more) continue;  // unreadable ones are reported when loaded
    to.bitnet_cpp = to.bitnet_cpp || more->i2_s;
    to.cuda =
        to.cuda || more->cuda || fs::path(other).filename().string().starts_with("libggml-cuda");
  }
  return "";
}

std::string distrusted_node(const std::string& path) {
  struct stat s{};
  if (::stat(path.c_str(), &s) != 0) return fmt::format("{} cannot be looked at", path);
  const uid_t user = ::geteuid();
  if (s.st_uid != 0 && s.st_uid != user)
    return fmt::format("{} belongs to another user (uid {}): build it as the user that runs this",
                       path, s.st_uid);
  const mode_t others = user == 0 ? S_IWGRP | S_IWOTH : S_IWOTH;
  if ((s.st_mode & others) != 0)
    return fmt::format("other users may write to {}: chmod go-w it", path);
  return "";
}

}  // namespace

places places_of(const asked_place& library_folder, const asked_place& root,
                 const environment& variables, std::vector<std::string>& notes) {
  if (!library_folder.value.empty()) return {library_folder.value, "", library_folder.origin};
  if (!root.value.empty()) return {"", root.value, root.origin};
  if (const auto old = variables.get("BITNET_CPP_PATH")) {
    notes.emplace_back("BITNET_CPP_PATH is deprecated: set BITNET_CPP_DIR in its place");
    return {"", *old, "BITNET_CPP_PATH"};
  }
  if (const auto cache = variables.cache_home())
    return {"", (*cache / "bitnet_cpp").string(), "the default"};
  return {};
}

std::vector<std::string> ggml_libraries(const std::vector<std::string>& folders) {
  std::vector<std::string> out;
  for (const std::string& folder : folders) {
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end;
         at.increment(failed)) {
      const std::string name = at->path().filename().string();
      if (name.starts_with("libggml") && name.ends_with(".so") && is_file(at->path()))
        out.push_back(at->path().string());
    }
  }
  std::ranges::sort(out);
  return out;
}

std::string distrusted(const std::string& file) {
  std::error_code failed;
  const fs::path whole = fs::canonical(file, failed);  // builds have chains of links
  if (failed) return fmt::format("{} cannot be looked at: {}", file, failed.message());
  for (const fs::path& one : {whole, whole.parent_path()})
    if (std::string why = distrusted_node(one.string()); !why.empty()) return why;
  return "";
}

discovery discover(const places& where, const inspector& inspect) {
  discovery out{folders_of(where), std::nullopt};
  for (searched_folder& one : out.searched) {
    const fs::path library = fs::path(one.path) / wanted;
    if (!is_file(library)) {
      one.verdict = why_none(one.path);
      continue;
    }
    build candidate;
    one.verdict = examine(library.string(), one, out.searched, inspect, candidate);
    if (!one.verdict.empty()) continue;
    one.verdict = out.found ? "also has one; the first counts" : "found";
    if (!out.found) out.found = std::move(candidate);
  }
  return out;
}

}  // namespace bitnet::host::crossval
