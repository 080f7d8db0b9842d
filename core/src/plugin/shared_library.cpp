#include "plugin/shared_library.hpp"

#include <dlfcn.h>
#include <fcntl.h>

#include <boost/dll/shared_library.hpp>
#include <cerrno>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "plugin/text.hpp"

namespace bitnet::plugin {
namespace {

// One file that was loaded. Its number names it to the dynamic linker, so it is never closed: the
// linker would take another file under the same number for this one.
struct mapped_file {
  file_descriptor fd;
  file_identity identity;
  boost::dll::shared_library library;
};

// Everything that was ever opened, once each, by device and inode. Never destroyed, so that no
// plugin is unmapped at exit while one of its threads or destructors still runs.
struct mapped_libraries {
  std::mutex mutex;
  std::map<std::pair<uint64_t, uint64_t>, mapped_file> by_inode;
};

mapped_libraries& mapped() {
  static auto* const all = new mapped_libraries;
  return *all;
}

// /proc/<pid>/fd/7 and not /proc/self/fd/7, so that a debugger finds the file under it, too.
std::string name_of(int fd) {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self", ignored);
  return "/proc/" + (self.empty() ? "self" : self.string()) + "/fd/" + std::to_string(fd);
}

std::unexpected<defect> refused(const std::string& shown, std::string why,
                                const std::string& name) {
  // The linker knows the file by its number only.
  for (std::size_t at = 0; !name.empty() && (at = why.find(name)) != std::string::npos;)
    why.replace(at, name.size(), shown);
  return reject(code::abi_load,
                "the dynamic linker cannot load " + shown + ": " + printable(why, 400));
}

}  // namespace

checked<shared_library> shared_library::open(const trusted_file& file) {
  const std::string shown = printable(file.path.string(), 400);
  const std::scoped_lock lock(mapped().mutex);
  const std::pair inode(file.identity.device, file.identity.inode);
  if (const auto known = mapped().by_inode.find(inode); known != mapped().by_inode.end()) {
    const mapped_file& one = known->second;
    if (one.identity.size_bytes != file.identity.size_bytes ||
        one.identity.modified_ns != file.identity.modified_ns)
      return reject(code::trust_changed, shown + " was written to while it is loaded",
                    "restart; replace plugins by renaming a new file over the old one");
    return shared_library(one.library.native());
  }
  mapped_file one{file_descriptor(::fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0)), file.identity, {}};
  if (one.fd.get() < 0) return refused(shown, std::generic_category().message(errno), "");
  const std::string name = name_of(one.fd.get());
  boost::dll::fs::error_code error;
  one.library.load(boost::dll::fs::path(name), error,
                   boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (error) {
    const char* why = dlerror();
    return refused(shown, why != nullptr ? why : error.message(), name);
  }
  void* const handle = one.library.native();
  mapped().by_inode.try_emplace(inode, std::move(one));
  return shared_library(handle);
}

void* shared_library::address(const char* symbol) const {
  return dlsym(handle_, symbol);
}

}  // namespace bitnet::plugin
