#include "plugin/inspection/library_search.hpp"

#include <fmt/core.h>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>

#include "plugin/codes/text.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/linker_cache.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {
namespace {

namespace fs = std::filesystem;

constexpr int max_include_depth = 4;
constexpr const char* linker_list = "/etc/ld.so.cache";

void read_configuration(const fs::path& file, int depth, std::vector<fs::path>& out) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  for (const linker_line& line : parse_linker_lines(text)) {
    if (!line.includes) {
      out.emplace_back(line.text);
      continue;
    }
    if (depth == max_include_depth) continue;
    const std::string absolute = (file.parent_path() / line.text).string();
    glob_t matches{};
    if (glob(absolute.c_str(), 0, nullptr, &matches) == 0)
      for (std::size_t i = 0; i < matches.gl_pathc; ++i)
        read_configuration(matches.gl_pathv[i], depth + 1, out);
    globfree(&matches);
  }
}

struct handle_closer {
  void operator()(void* handle) const noexcept { dlclose(handle); }
};
using linker_handle = std::unique_ptr<void, handle_closer>;

// The linker's search path for a library without a run path; empty if it does not report it.
std::vector<fs::path> search_path() {
  linker_handle some(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD));
  if (!some) some.reset(dlopen(nullptr, RTLD_LAZY));
  std::vector<fs::path> out;
  Dl_serinfo size{};
  if (!some || dlinfo(some.get(), RTLD_DI_SERINFOSIZE, &size) != 0) return out;
  // The list follows the header in one block; only the linker knows its size.
  const std::unique_ptr<std::byte[]> block(new std::byte[size.dls_size]());
  auto* info = reinterpret_cast<Dl_serinfo*>(block.get());
  if (dlinfo(some.get(), RTLD_DI_SERINFOSIZE, info) != 0 ||
      dlinfo(some.get(), RTLD_DI_SERINFO, info) != 0)
    return out;
  const Dl_serpath* paths = &info->dls_serpath[0];
  for (unsigned i = 0; i < info->dls_cnt; ++i) out.emplace_back(paths[i].dls_name);
  return out;
}

// Whether it is a system folder, last in the linker's search path: "/lib", "/usr/lib64",
// "/usr/lib/x86_64-linux-gnu".
bool is_systems_own(const fs::path& folder) {
  const std::string text = folder.lexically_normal().string();
  return text.starts_with("/lib") || text.starts_with("/usr/lib");
}

// Whether the linker would take a file: it skips files that it cannot open and files for another
// machine.
bool would_be_taken(const fs::path& file) {
  const file_descriptor fd(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (fd.get() < 0) return false;
  Elf64_Ehdr header{};
  if (::pread(fd.get(), &header, sizeof header, 0) != sizeof header) return true;  // it stops there
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || is_for_this_machine(header);
}

// Subfolders that glibc searches before the folder itself. Those outside of glibc-hwcaps: until
// version 2.36, also nested.
constexpr auto older_names = std::to_array<const char*>(
    {"tls", "haswell", "avx512_1", "xeon_phi", "x86_64", "aarch64", "atomics"});
constexpr int max_subfolder_depth = 4;

void add_subfolders(const fs::path& folder, int depth, std::vector<fs::path>& out) {
  std::error_code ignored;
  for (const char* name : older_names) {
    const fs::path inner = folder / name;
    if (depth == max_subfolder_depth || !fs::is_directory(inner, ignored)) continue;
    add_subfolders(inner, depth + 1, out);
    out.push_back(inner);
  }
}

std::vector<fs::path> subfolders_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  fs::directory_iterator at(folder / "glibc-hwcaps", error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) out.push_back(at->path());
  add_subfolders(folder, 0, out);
  return out;
}

}  // namespace

std::vector<linker_line> parse_linker_lines(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  constexpr std::string_view include = "include";
  std::vector<linker_line> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    line = line.substr(0, line.find_last_not_of(blanks) + 1);
    // The system cuts a path at its first zero byte, which gives another path.
    if (line.find('\0') != std::string_view::npos) continue;
    if (line.starts_with('/')) out.push_back({false, std::string(line)});
    if (!line.starts_with(include)) continue;
    line.remove_prefix(include.size());
    const std::size_t pattern = line.find_first_not_of(blanks);
    if (pattern == 0 || pattern == std::string_view::npos) continue;
    out.push_back({true, std::string(line.substr(pattern))});
  }
  return out;
}

std::vector<fs::path> linker_directories(const fs::path& configuration) {
  std::vector<fs::path> out;
  read_configuration(configuration, 0, out);
  return out;
}

std::optional<fs::path> loaded_file(const std::string& name) {
  const linker_handle known(dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD));
  const link_map* map = nullptr;
  if (!known || dlinfo(known.get(), RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0)
    return std::nullopt;
  return map->l_name != nullptr ? map->l_name : "";
}

// Any user who can write to a folder, even a sticky one, can make a file that is missing there.
checked<void> trust_place(const fs::path& folder) {
  std::error_code ignored;
  auto nearest = fs::absolute(folder, ignored);
  const auto whole = nearest;
  while (nearest != nearest.root_path() && !fs::exists(nearest, ignored))
    nearest = nearest.parent_path();
  if (auto fine = trust_directory(nearest); !fine) return fine;
  struct stat s{};
  if (::stat(nearest.c_str(), &s) != 0 || (s.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return reject(code::trust_mode,
                nearest == whole
                    ? fmt::format("{} is writable by others", printable(nearest.string(), 200))
                    : fmt::format("is not there, and {} is writable by others: they could make it",
                                  printable(nearest.string(), 200)));
}

library_search::library_search() : usual_(search_path()) {
  while (n_system_ < usual_.size() && is_systems_own(usual_[usual_.size() - 1 - n_system_]))
    ++n_system_;
}

library_search::answer library_search::find(const std::string& name, const folders& before,
                                            const folders& after) {
  answer out;
  const auto n_own = static_cast<std::ptrdiff_t>(usual_.size() - n_system_);
  const folders variable(usual_.begin(), usual_.begin() + n_own);
  for (const folders& list : {before, variable, after})
    for (const fs::path& folder : list)
      if (look_in(folder, name, out)) return out;
  if (look_in_list(name, out)) return out;
  for (auto folder = usual_.begin() + n_own; folder != usual_.end(); ++folder)
    if (look_in(*folder, name, out)) return out;
  if (!out.variants.empty()) out.file = out.variants.front();
  return out;
}

const checked<void>& library_search::judge_folder(const fs::path& folder) {
  const auto known = judged_.find(folder);
  return known != judged_.end() ? known->second
                                : judged_.emplace(folder, trust_place(folder)).first->second;
}

bool library_search::look_in(const fs::path& folder, const std::string& name, answer& out) {
  if (const auto& fine = judge_folder(folder); !fine && !out.fault)
    out.fault = defect{fine.error().code, BITNET_REJECTED,
                       fmt::format("is looked for in '{}', which cannot be trusted: {}",
                                   printable(folder.string(), 200), fine.error().reason),
                       ""};
  auto known = subfolders_.find(folder);
  if (known == subfolders_.end()) known = subfolders_.emplace(folder, subfolders_of(folder)).first;
  for (const fs::path& inner : known->second) add_variant(inner / name, out);
  return take(folder / name, out);
}

bool library_search::look_in_list(const std::string& name, answer& out) {
  if (!list_) {
    const file_descriptor fd(::open(linker_list, O_RDONLY | O_CLOEXEC));
    struct stat s{};
    if (fd.get() < 0 || ::fstat(fd.get(), &s) != 0) return false;
    list_ = file_map::open(fd.get(), static_cast<uint64_t>(s.st_size));
    if (!list_) return false;
  }
  for (const cached_library& one : find_in_linker_cache(list_->bytes(), name))
    if (one.only_some)
      add_variant(one.file, out);
    else if (take(one.file, out))
      return true;
  return false;
}

bool library_search::take(const fs::path& file, answer& out) {
  if (!would_be_taken(file)) return false;
  out.file = file;
  if (const auto trusted = open_trusted(file); !trusted && !out.fault) out.fault = trusted.error();
  return true;
}

void library_search::add_variant(const fs::path& file, answer& out) {
  answer one;
  if (!take(file, one)) return;
  out.variants.push_back(file);
  if (one.fault && !out.fault) out.fault = std::move(one.fault);
}

}  // namespace bitnet::plugin
