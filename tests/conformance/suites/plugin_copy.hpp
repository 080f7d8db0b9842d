#pragma once
// A copy of the plugin's file under another name: the loader takes it for another library.

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "harness/plugin.hpp"

namespace bitnet::conformance {

class plugin_copy {
 public:
  plugin_copy() {
    std::string folder = (std::filesystem::temp_directory_path() / "bitnet-copy-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder for a copy");
    folder_ = folder;
    file_ = folder_ / std::filesystem::path(run_options().file).filename();
    std::filesystem::copy_file(run_options().file, file_);
    library_ = dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      const std::string why = dlerror();
      remove();
      throw std::runtime_error(why);
    }
  }
  ~plugin_copy() {
    unload();
    remove();
  }
  plugin_copy(const plugin_copy&) = delete;
  plugin_copy& operator=(const plugin_copy&) = delete;

  bitnet_backend_entry entry() const {
    void* symbol = dlsym(library_, BITNET_BACKEND_ENTRY_NAME);
    return reinterpret_cast<bitnet_backend_entry>(symbol);
  }
  std::string file() const { return file_.string(); }
  void unload() {
    if (library_ != nullptr) dlclose(library_);
    library_ = nullptr;
  }

 private:
  void remove() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::filesystem::path folder_, file_;
  void* library_ = nullptr;
};

}  // namespace bitnet::conformance
