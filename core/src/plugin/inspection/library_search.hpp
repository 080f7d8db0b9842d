#pragma once
// Finds libraries as the dynamic linker does, and checks whether another user could put one there.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/codes/codes.hpp"
#include "plugin/trust/file_map.hpp"

namespace bitnet::plugin {

// A line of an ld.so.conf file: an absolute folder, or a pattern of files to include.
struct linker_line {
  bool includes = false;
  std::string text;
};
[[nodiscard]] std::vector<linker_line> parse_linker_lines(std::string_view text);

// The directories that an ld.so.conf file names, includes followed.
[[nodiscard]] std::vector<std::filesystem::path> linker_directories(
    const std::filesystem::path& configuration);

// The file of a library that this process has loaded, by the linker; nullopt if it is not loaded.
[[nodiscard]] std::optional<std::filesystem::path> loaded_file(const std::string& name);

// One search; it caches results about folders.
class library_search {
 public:
  using folders = std::vector<std::filesystem::path>;
  library_search();
  // False if the linker does not report its search path: then nothing is found.
  [[nodiscard]] bool is_known() const { return !usual_.empty(); }

  struct answer {
    std::filesystem::path file;  // the linker would take it; "": none
    // Files that it would take on some processors, in folders such as glibc-hwcaps/x86-64-v3.
    folders variants;
    // Why the file, a variant, or a folder searched before it, cannot be trusted. BN-T-*.
    std::optional<defect> fault;
  };
  // Searches in the linker's order: `before` (DT_RPATH), LD_LIBRARY_PATH, `after` (DT_RUNPATH), the
  // list of ldconfig, the system's folders; skips files for other machines.
  [[nodiscard]] answer find(const std::string& name, const folders& before, const folders& after);

 private:
  bool look_in(const std::filesystem::path& folder, const std::string& name, answer& out);
  bool take(const std::filesystem::path& file, answer& out);
  bool look_in_list(const std::string& name, answer& out);
  void add_variant(const std::filesystem::path& file, answer& out);
  const checked<void>& judge_folder(const std::filesystem::path& folder);

  folders usual_;             // LD_LIBRARY_PATH's, then the system's own
  std::size_t n_system_ = 0;  // number of the system's folders
  std::map<std::filesystem::path, checked<void>> judged_;
  std::map<std::filesystem::path, folders> subfolders_;
  std::optional<file_map> list_;
};

// Checks that files in this folder, now and later, can be trusted. BN-T-*.
[[nodiscard]] checked<void> trust_place(const std::filesystem::path& folder);

}  // namespace bitnet::plugin
