#include "plugin/shared_library.hpp"

#include <dlfcn.h>

#include <boost/dll/shared_library.hpp>
#include <map>
#include <mutex>
#include <utility>

#include "plugin/text.hpp"

namespace bitnet::plugin {
namespace {

// Everything that was ever opened, once each. Never destroyed, so that no plugin is unmapped at
// exit while one of its threads or destructors still runs.
struct mapped_libraries {
  std::mutex mutex;
  std::map<void*, boost::dll::shared_library> by_handle;
};

mapped_libraries& mapped() {
  static auto* const all = new mapped_libraries;
  return *all;
}

}  // namespace

checked<shared_library> shared_library::open(const std::filesystem::path& file) {
  const std::string shown = printable(file.string(), 400);
  if (!file.is_absolute())
    return reject(code::abi_load,
                  "'" + shown + "' is not an absolute path, so it will not be loaded");
  boost::dll::shared_library library;
  boost::dll::fs::error_code error;
  library.load(boost::dll::fs::path(file.string()), error,
               boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (error) {
    const char* why = dlerror();
    return reject(code::abi_load, "the dynamic linker cannot load " + shown + ": " +
                                      printable(why != nullptr ? why : error.message(), 400));
  }
  void* const handle = library.native();
  const std::scoped_lock lock(mapped().mutex);
  mapped().by_handle.try_emplace(handle, std::move(library));
  return shared_library(handle);
}

void* shared_library::address(const char* symbol) const {
  return dlsym(handle_, symbol);
}

}  // namespace bitnet::plugin
