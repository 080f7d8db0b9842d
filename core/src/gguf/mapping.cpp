#include "gguf/mapping.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "gguf/file_judge.hpp"
#include "gguf/text.hpp"
#include "system/limits.hpp"

namespace bitnet::gguf {
namespace {

std::string reason(int error) {
  return limits::reason(error);
}

}  // namespace

result<mapping> mapping::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a named pipe blocks until it has a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int error = errno;
    const std::string advice = error == ENOENT   ? "check the path of the model"
                               : error == EACCES ? "check who may read it"
                                                 : "check the file";
    return fail(BITNET_NOT_FOUND, fmt::format("cannot be opened: {}; {}", reason(error), advice));
  }
  return adopt(descriptor, path);
}

result<mapping> mapping::adopt(int descriptor, const std::filesystem::path& path) {
  mapping m;
  m.path_ = path;
  m.descriptor_ = descriptor;
  struct stat info{};
  if (fstat(m.descriptor_, &info) != 0)
    return fail(BITNET_NOT_FOUND, fmt::format("cannot be examined: {}", reason(errno)));
  if (S_ISDIR(info.st_mode))
    return fail(
        BITNET_BAD_DATA,
        "is a directory without a config.json; name the .gguf file inside it, or the folder of a "
        "Hugging Face checkpoint");
  if (!S_ISREG(info.st_mode))
    return fail(BITNET_BAD_DATA, "is not a regular file; expected a .gguf file on disk");
  if (info.st_size <= 0)
    return fail(BITNET_BAD_DATA, "is empty; expected a GGUF model: download it again");
  const auto size = static_cast<size_t>(info.st_size);
  m.identity_ = fmt::format("{}:{}:{}:{}.{}:{}.{}", info.st_dev, info.st_ino, info.st_size,
                            info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                            info.st_ctim.tv_nsec);
  auto map = guarded_map::open(m.descriptor_, size);
  if (!map)
    return fail(errno == ENOMEM ? BITNET_OUT_OF_MEMORY : BITNET_NOT_FOUND,
                fmt::format("cannot be mapped ({} bytes): {}", size, reason(errno)));
  m.map_ = *std::move(map);
  if (file_judge* judge = file_judge::current())
    if (auto ok = judge->admit(m); !ok) return std::unexpected(std::move(ok.error()));
  return m;
}

mapping::mapping(mapping&& other) noexcept
    : path_(std::move(other.path_)),
      identity_(std::move(other.identity_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      map_(std::move(other.map_)) {}

mapping& mapping::operator=(mapping&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(identity_, other.identity_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(map_, other.map_);
  return *this;
}

mapping::~mapping() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool mapping::is_file(const std::filesystem::path& path) const {
  struct stat there{};
  struct stat here{};
  return stat(path.c_str(), &there) == 0 && fstat(descriptor_, &here) == 0 &&
         there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

result<void> mapping::check_read() const {
  return map_.is_lost() ? check_size() : result<void>();
}

result<void> mapping::check_size() const {
  struct stat info{};
  const std::size_t size = bytes().size();
  if (fstat(descriptor_, &info) != 0 || std::cmp_not_equal(info.st_size, size))
    return fail(BITNET_BAD_DATA,
                fmt::format("{} had {} bytes when it was opened and has {} now: it was changed "
                            "while in use; load the model again",
                            quote(path_.native()), size, static_cast<int64_t>(info.st_size)));
  if (map_.is_lost())
    return fail(BITNET_BAD_DATA, fmt::format("a part of {} could not be read: it was changed while "
                                             "in use, or its disk fails; load the model again",
                                             quote(path_.native())));
  return {};
}

}  // namespace bitnet::gguf
