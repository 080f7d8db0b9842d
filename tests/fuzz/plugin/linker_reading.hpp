#pragma once
// One shared object read twice: by us, and by the dynamic linker of this system, in a child that
// ends with it. Shared by the fuzz target and the bounded test.

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/inspection/dependencies.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/foreign.hpp"
#include "plugin/inspection/run_path.hpp"

namespace bitnet::test {

// What we read; `fine` if we would let it pass.
struct our_reading {
  bool fine = false;
  std::set<std::string> exports, needed, closure;
  std::vector<std::string> run_path;
};

inline our_reading read_ourselves(std::span<const std::byte> file) {
  our_reading out;
  const auto image = plugin::elf_image::open(file);
  if (!image || !plugin::redirections(*image).empty()) return out;
  const auto symbols = image->symbols();
  if (!symbols) return out;
  for (const auto& s : *symbols)
    if (s.defined && s.binding != STB_LOCAL && s.visibility != STV_HIDDEN &&
        s.visibility != STV_INTERNAL)
      out.exports.insert(std::string(s.name));
  plugin::inspection facts;
  plugin::read_needs(*image, facts);
  out.run_path = facts.run_path;
  for (const auto& item : out.run_path)
    if (!plugin::run_path_fault(item).empty()) return out;
  for (const auto name : image->dynamic_strings(DT_NEEDED)) {
    if (!plugin::name_fault(name).empty()) return out;
    out.needed.insert(std::string(name));
  }
  for (const auto& one : plugin::resolve_libraries(facts)) {
    out.closure.insert(one.name);
    if (!one.file.empty()) out.closure.insert(one.file.filename().string());
  }
  out.fine = true;
  return out;
}

// What the linker said; `answered` unless it, or code of the file, ended the child.
struct linkers_reading {
  bool answered = false, loaded = false;
  std::set<std::string> exports;
  std::vector<std::string> mapped;    // names of files that came with it
  std::vector<std::string> run_path;  // folders, expanded
  std::string error;                  // of dlopen
};

namespace in_child {

inline void say(int to, const std::string& what, const std::string& text) {
  const std::string line = what + " " + text + "\n";
  if (write(to, line.data(), line.size()) < 0) _exit(3);
}

inline std::vector<std::string> folders_of(void* handle) {
  Dl_serinfo size{};
  if (dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) != 0) return {};
  const std::unique_ptr<std::byte[]> block(new std::byte[size.dls_size]());
  auto* info = reinterpret_cast<Dl_serinfo*>(block.get());
  if (dlinfo(handle, RTLD_DI_SERINFOSIZE, info) != 0 || dlinfo(handle, RTLD_DI_SERINFO, info) != 0)
    return {};
  const Dl_serpath* paths = &info->dls_serpath[0];
  std::vector<std::string> out;
  for (unsigned i = 0; i < info->dls_cnt; ++i) out.emplace_back(paths[i].dls_name);
  return out;
}

inline std::set<std::string> objects() {
  std::set<std::string> out;
  const auto add = [](dl_phdr_info* info, std::size_t, void* to) {
    static_cast<std::set<std::string>*>(to)->insert(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(add, &out);
  return out;
}

[[noreturn]] inline void load(int file, int to, const std::set<std::string>& names) {
  for (const auto& [what, most] : {std::pair{RLIMIT_CORE, 0}, {RLIMIT_FSIZE, 0}, {RLIMIT_CPU, 2}}) {
    const rlimit limit{static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
    (void)setrlimit(what, &limit);
  }
  alarm(20);
  // Its assertions are no news.
  if (const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) dup2(nowhere, 2);
  void* const plain = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  const auto usual = folders_of(plain);
  const auto before = objects();
  const std::string name = "/proc/self/fd/" + std::to_string(file);
  void* const handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    std::string why = dlerror();
    std::ranges::replace(why, '\n', ' ');
    say(to, "error", why);
    say(to, "end", "");
    _exit(0);
  }
  std::vector<void*> others;
  for (const auto& one : objects())
    if (!before.contains(one) && one != name) {
      say(to, "mapped", std::filesystem::path(one).filename().string());
      others.push_back(dlopen(one.c_str(), RTLD_LAZY | RTLD_NOLOAD));
    }
  auto folders = folders_of(handle);
  for (const auto& one : usual)
    if (const auto at = std::find(folders.rbegin(), folders.rend(), one); at != folders.rend())
      folders.erase(std::next(at).base());
  for (const auto& one : folders) say(to, "folder", one);
  for (const auto& symbol : names) {
    bool theirs = dlsym(RTLD_DEFAULT, symbol.c_str()) != nullptr;
    for (void* const other : others)
      theirs = theirs || (other != nullptr && dlsym(other, symbol.c_str()) != nullptr);
    if (!theirs && dlsym(handle, symbol.c_str()) != nullptr) say(to, "export", symbol);
    if (theirs) say(to, "elsewhere", symbol);
  }
  say(to, "end", "");
  _exit(0);
}

}  // namespace in_child

// `names` are looked up; those that other libraries have too are taken out of them.
inline linkers_reading ask_linker(std::span<const std::byte> file, std::set<std::string>& names) {
  linkers_reading out;
  const int memory = memfd_create("plugin", MFD_CLOEXEC);
  std::array<int, 2> pipe_ends{};
  if (memory < 0 || pipe(pipe_ends.data()) != 0) return out;
  const bool whole = write(memory, file.data(), file.size()) == static_cast<ssize_t>(file.size());
  const pid_t child = whole ? fork() : -1;
  if (child == 0) in_child::load(memory, pipe_ends[1], names);
  close(pipe_ends[1]);
  std::string said;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; child > 0 && (n = read(pipe_ends[0], part.data(), part.size())) > 0;)
    said.append(part.data(), static_cast<std::size_t>(n));
  close(pipe_ends[0]);
  close(memory);
  if (child > 0) waitpid(child, nullptr, 0);
  for (std::size_t at = 0, end; (end = said.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = said.substr(at, end - at);
    const std::string what = line.substr(0, line.find(' '));
    const std::string text = line.substr(std::min(line.size(), what.size() + 1));
    if (what == "export") out.exports.insert(text);
    if (what == "elsewhere") names.erase(text);
    if (what == "mapped") out.mapped.push_back(text);
    if (what == "folder") out.run_path.push_back(text);
    if (what == "error") out.error = text;
    if (what == "end") out.answered = true;
  }
  out.loaded = out.answered && out.error.empty();
  return out;
}

// Texts of the file that could be names of symbols.
inline std::set<std::string> possible_names(std::span<const std::byte> file) {
  constexpr std::size_t most = 2000;
  std::set<std::string> out;
  std::string word;
  for (const std::byte b : file) {
    const char c = static_cast<char>(b);
    const bool fits =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (fits && word.size() < 200) {
      word += c;
      continue;
    }
    if (c == '\0' && word.size() > 3 && out.size() < most) out.insert(word);
    word.clear();
  }
  return out;
}

// The folders that the linker should have for this run path, once each.
inline std::vector<std::string> expected_folders(const std::vector<std::string>& run_path) {
  std::vector<std::string> out;
  for (const auto& item : run_path) {
    const auto folder = plugin::run_path_folder(item, "/proc/self/fd");
    if (!folder) continue;
    std::string text = folder->string();
    while (text.size() > 1 && text.ends_with('/')) text.pop_back();
    if (std::ranges::find(out, text) == out.end()) out.push_back(text);
  }
  return out;
}

struct comparison {
  bool fine = false, loaded = false;
  std::string difference;  // "" if both read the same
};

// A file that we reject needs no second opinion.
inline comparison compare_readings(std::span<const std::byte> file) {
  comparison out;
  const our_reading ours = read_ourselves(file);
  out.fine = ours.fine;
  if (!ours.fine) return out;
  auto names = possible_names(file);
  names.insert(ours.exports.begin(), ours.exports.end());
  const linkers_reading theirs = ask_linker(file, names);
  out.loaded = theirs.loaded;
  constexpr std::string_view absent = ": cannot open shared object file";
  if (const auto at = theirs.error.find(absent); at != std::string::npos) {
    const std::string wanted = theirs.error.substr(0, at);
    if (!ours.needed.contains(wanted) && !ours.closure.contains(wanted))
      out.difference = "the linker looks for " + wanted;
  }
  if (!theirs.loaded) return out;
  for (const auto& name : names)
    if (ours.exports.contains(name) != theirs.exports.contains(name))
      out.difference =
          (theirs.exports.contains(name) ? "only the linker finds " : "only we find ") + name;
  for (const auto& name : theirs.mapped)
    if (!ours.closure.contains(name)) out.difference = "the linker brought " + name;
  if (const auto wanted = expected_folders(ours.run_path); theirs.run_path != wanted) {
    out.difference = "the linker's run path is";
    for (const auto& one : theirs.run_path) out.difference += " '" + one + "'";
    out.difference += ", ours";
    for (const auto& one : wanted) out.difference += " '" + one + "'";
  }
  return out;
}

}  // namespace bitnet::test
