#pragma once
// Where a build of llama.cpp or bitnet.cpp lies, found by names of files and without executing
// anything. Reads the file system through paths alone, so that tests can make trees.

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settings/environment.hpp"

namespace bitnet::host::crossval {

// What decides where is searched.
struct places {
  std::string library_folder;  // the only one, in place of all tiers; "": none
  std::string root;            // of a tree with its build; "": none
  std::string origin;          // what gave the one that counts: "--cpp-dir", "BITNET_CPP_DIR"
};
struct asked_place {
  std::string value, origin;  // value "": not set
};
// `library_folder` comes before `root`, that before BITNET_CPP_PATH, and that before bitnet_cpp in
// the user's cache. A variable that is empty counts as not set. `notes` gets the warning about
// BITNET_CPP_PATH.
[[nodiscard]] places places_of(const asked_place& library_folder, const asked_place& root,
                               const environment& variables, std::vector<std::string>& notes);

// What the bytes of a library say of it.
struct library_facts {
  bool llama = false;  // it defines functions llama_*
  bool i2_s = false;   // it names the weights of bitnet.cpp, which llama.cpp does not have
  bool cuda = false;   // it names CUDA, or needs a library of it
};
using inspector = std::function<std::expected<library_facts, std::string>(const std::string& path)>;

// One folder that was searched, in order.
struct searched_folder {
  std::string path;
  uint32_t tier = 0;    // 1 to 3; 0: --crossval-libdir
  std::string verdict;  // "found", or why not
};
struct build {
  std::string library;               // libllama.so
  std::vector<std::string> folders;  // with libraries that it may need; its own is the first
  uint32_t tier = 0;
  bool bitnet_cpp = false;  // else llama.cpp
  bool cuda = false;
  [[nodiscard]] std::string_view flavour() const { return bitnet_cpp ? "bitnet.cpp" : "llama.cpp"; }
};
struct discovery {
  std::vector<searched_folder> searched;
  std::optional<build> found;
};

// The first folder that has a libllama.so which may be loaded and defines llama_*.
[[nodiscard]] discovery discover(const places& where, const inspector& inspect);

// Libraries of ggml in these folders, by name: what libllama.so needs.
[[nodiscard]] std::vector<std::string> ggml_libraries(const std::vector<std::string>& folders);

// "" where the file and its folder belong to root or to the process's user, and others cannot write
// to them; as root they must be root's. Else the reason.
[[nodiscard]] std::string distrusted(const std::string& file);

}  // namespace bitnet::host::crossval
