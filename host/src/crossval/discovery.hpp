#pragma once
// Finds a build of llama.cpp or bitnet.cpp by file names, without executing anything. Uses paths
// below given folders only, so tests can build trees.

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settings/environment.hpp"

namespace bitnet::host::crossval {

// The settings that decide where to search.
struct places {
  std::string library_folder;  // searched in place of all tiers; "": not set
  std::string root;            // a source tree with its build; "": not set
  std::string origin;          // which setting won: "--cpp-dir", "BITNET_CPP_DIR"
};
struct asked_place {
  std::string value, origin;  // value "": not set
};
// Precedence: `library_folder`, `root`, BITNET_CPP_PATH, then bitnet_cpp in the user's cache. An
// empty variable counts as not set. `notes` receives the warning about BITNET_CPP_PATH.
[[nodiscard]] places places_of(const asked_place& library_folder, const asked_place& root,
                               const environment& variables, std::vector<std::string>& notes);

// Facts read from a library's bytes.
struct library_facts {
  bool llama = false;  // it defines functions llama_*
  bool i2_s = false;   // it names bitnet.cpp's weight format, which llama.cpp lacks
  bool cuda = false;   // it names CUDA or needs a CUDA library
};
using inspector = std::function<std::expected<library_facts, std::string>(const std::string& path)>;

// A searched folder; they are listed in search order.
struct searched_folder {
  std::string path;
  uint32_t tier = 0;    // 1 to 3; 0: --crossval-libdir
  std::string verdict;  // "found", or the reason it was passed over
};
struct build {
  std::string library;               // libllama.so
  std::vector<std::string> folders;  // folders of libraries that it may need, its own first
  uint32_t tier = 0;
  bool bitnet_cpp = false;  // else llama.cpp
  bool cuda = false;
  [[nodiscard]] std::string_view flavour() const { return bitnet_cpp ? "bitnet.cpp" : "llama.cpp"; }
};
struct discovery {
  std::vector<searched_folder> searched;
  std::optional<build> found;
};

// Returns the first folder with a trusted libllama.so that defines llama_*.
[[nodiscard]] discovery discover(const places& where, const inspector& inspect);

// The ggml libraries in these folders, by name; libllama.so needs them.
[[nodiscard]] std::vector<std::string> ggml_libraries(const std::vector<std::string>& folders);

// Returns "" if root or the process's user owns the file and its folder and no other user can write
// to them, else the reason. If the user is root, both must be root's.
[[nodiscard]] std::string distrusted(const std::string& file);

}  // namespace bitnet::host::crossval
