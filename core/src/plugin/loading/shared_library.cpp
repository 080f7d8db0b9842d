#include "plugin/loading/shared_library.hpp"

#include <fmt/core.h>

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <boost/dll/shared_library.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "plugin/codes/text.hpp"
#include "plugin/inspection/dependencies.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/foreign.hpp"
#include "plugin/inspection/inspect.hpp"
#include "plugin/inspection/run_path.hpp"
#include "plugin/loading/loaded_libraries.hpp"
#include "plugin/trust/file_map.hpp"

namespace bitnet::plugin {
namespace {

using dll = boost::dll::shared_library;

checked<dll> load(const std::string& name, const std::string& shown) {
  dll library;
  boost::dll::fs::error_code error;
  library.load(name, error, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (!error) return library;
  const char* message = dlerror();  // boost's `error` is the same for every reason
  std::string why = message != nullptr ? message : error.message();
  // The linker's message has only the descriptor's path; replaces it by the file's name.
  for (std::size_t at = 0; (at = why.find(name)) != std::string::npos;)
    why.replace(at, name.size(), shown);
  return reject(code::abi_load,
                fmt::format("the dynamic linker cannot load {}: {}", shown, printable(why, 400)));
}

// The file of the library's dynamic section, from the linker; Boost.DLL has no function for that.
std::optional<mapped_identity> file_of(const dll& library) {
  const link_map* map = nullptr;
  if (dlinfo(library.native(), RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) return std::nullopt;
  return mapped_at(reinterpret_cast<uintptr_t>(map->l_ld));
}

// A path for the descriptor that the linker has not seen: for a reused number it would return the
// earlier library. It has the process's number in place of "self", so that a debugger finds the
// file, too.
std::string fresh_name(const file_descriptor& fd) {
  static std::atomic<uint64_t> names{0};
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self", ignored);
  std::string out = "/proc/" + (self.empty() ? "self" : self.string()) + "/fd/";
  for (uint64_t serial = ++names; serial != 0; serial /= 2) out += serial % 2 != 0 ? ".//" : "./";
  return out + std::to_string(fd.get());
}

// Keeps libraries mapped, once each. Never destroyed, so that no plugin is unmapped at exit while
// one of its threads or destructors still runs.
void keep_for_ever(dll&& library) {
  static std::mutex mutex;
  static auto* const all = new std::map<void*, dll>;
  const std::scoped_lock lock(mutex);
  void* const handle = library.native();
  all->try_emplace(handle, std::move(library));
}

// The loaded files as they were at loading; one entry for each mapped file.
class loaded_files {
 public:
  // True if the file is mapped and has been written to since: pages of both versions would be
  // mixed.
  bool was_written_to(const file_identity& now, const mapped_identity& mapped) {
    const std::scoped_lock lock(mutex_);
    const auto known = files_.find({now.device, now.inode});
    if (known != files_.end() &&
        (known->second.size_bytes != now.size_bytes ||
         known->second.modified_ns != now.modified_ns) &&
        is_mapped(mapped))
      return true;
    files_.insert_or_assign({now.device, now.inode}, now);
    return false;
  }

  // If memory runs out, the file stays recorded; it is then rejected if it was written to.
  void forget_unless_mapped(const file_identity& file, const mapped_identity& mapped) noexcept try {
    const std::scoped_lock lock(mutex_);
    if (!is_mapped(mapped)) files_.erase({file.device, file.inode});
  } catch (const std::exception&) {
    return;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<uint64_t, uint64_t>, file_identity> files_;  // guarded; by device and inode
};

loaded_files& loaded() {
  static auto* const all = new loaded_files;  // never destroyed, as in keep_for_ever
  return *all;
}

// Judges the needed libraries in this process: the probe's child may have loaded others than the
// process that inspected the file.
checked<std::vector<needed_library>> judge_needs(const trusted_file& file) {
  const auto map = file_map::open(file.fd.get(), file.identity.size_bytes);
  if (!map) return reject(code::abi_load, "cannot be mapped into memory");
  const auto image = elf_image::open(map->bytes());
  if (!image) return reject(code::abi_load, image.error().reason);
  findings found;
  examine_foreign(*image, found);
  inspection facts;
  read_needs(*image, facts);
  examine_run_path(facts, found);
  if (const defect* bad = found.first_error()) return std::unexpected(*bad);
  auto out = resolve_libraries(facts);
  if (auto fine = check_libraries(out); !fine) return std::unexpected(std::move(fine.error()));
  return out;
}

}  // namespace

struct shared_library::contents {
  std::shared_ptr<const trusted_file> file;
  mapped_identity mapped;
  dll library;
};

shared_library::shared_library(std::unique_ptr<contents> c) : contents_(std::move(c)) {}
shared_library::shared_library(shared_library&&) noexcept = default;
shared_library& shared_library::operator=(shared_library&&) noexcept = default;

shared_library::~shared_library() {
  if (!contents_) return;
  try {
    keep_for_ever(std::move(contents_->library));
  } catch (const std::bad_alloc&) {
    static_cast<void>(contents_.release());  // stays mapped, but is not stored once per handle
  }
}

checked<shared_library> shared_library::open(trusted_file file) {
  const std::string shown = printable(file.path.string(), 400);
  const auto wanted = identity_when_mapped(file.fd.get());
  if (!wanted)
    return reject(code::abi_load, fmt::format("{} cannot be mapped into memory", shown),
                  "check that its file system is not mounted noexec");
  if (loaded().was_written_to(file.identity, *wanted))
    return reject(code::trust_changed, fmt::format("{} was written to while it is loaded", shown),
                  "restart; replace plugins by renaming a new file over the old one");
  const auto judged = judge_needs(file);
  if (!judged) {
    defect named = judged.error();
    named.reason = fmt::format("{} {}", shown, named.reason);
    return std::unexpected(std::move(named));
  }
  const auto before = loaded_objects();
  auto library = load(fresh_name(file.fd), shown);
  if (!library) {
    loaded().forget_unless_mapped(file.identity, *wanted);
    return std::unexpected(std::move(library.error()));
  }
  if (file_of(*library) != wanted)
    return reject(code::abi_load,
                  fmt::format("the dynamic linker gives another file than {}", shown),
                  "restart the program");
  if (auto fine = check_loaded(before, *wanted, *judged); !fine)
    return std::unexpected(std::move(fine.error()));
  return shared_library(std::unique_ptr<contents>(new contents{
      std::make_shared<const trusted_file>(std::move(file)), *wanted, std::move(*library)}));
}

const file_identity& shared_library::file() const {
  return contents_->file->identity;
}

const std::shared_ptr<const trusted_file>& shared_library::opened() const {
  return contents_->file;
}

mapped_identity shared_library::mapped() const {
  return contents_->mapped;
}

void shared_library::release() noexcept {
  const auto file = contents_->file->identity;
  const auto mapped = contents_->mapped;
  contents_.reset();
  loaded().forget_unless_mapped(file, mapped);
}

void* shared_library::address(const char* symbol) const {
  const dll& library = contents_->library;
  if (!library.has(symbol)) return nullptr;
  return reinterpret_cast<void*>(&library.get<void()>(symbol));
}

}  // namespace bitnet::plugin
