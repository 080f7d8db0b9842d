#include "binary_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

namespace bitnet::opencl {
namespace {

constexpr char magic[] = "bitnet-opencl-1\n";
constexpr uint64_t most_bytes = uint64_t{256} << 20;

struct head {
  char magic[16];
  uint64_t key_bytes, data_bytes, data_hash;
};

class descriptor {
 public:
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  ~descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

std::string reason() {
  return std::generic_category().message(errno);
}

bool only_ours(const struct stat& s) {
  return s.st_uid == geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool read_all(int fd, void* to, uint64_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes != 0) {
    const ssize_t n = read(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

bool write_all(int fd, const void* from, uint64_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes != 0) {
    const ssize_t n = write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

// Makes the folder and those above it.
bool make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return true;
  const auto slash = path.rfind('/');
  if (errno != ENOENT || slash == std::string::npos || slash == 0) return false;
  if (!make_folder(path.substr(0, slash))) return false;
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

std::string_view view_of(const std::vector<unsigned char>& data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

}  // namespace

uint64_t hash_of(std::string_view bytes, uint64_t start) {
  uint64_t hash = start;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::optional<std::string_view> read_kept(std::string_view file, std::string_view key) {
  head h{};
  if (file.size() < sizeof h) return std::nullopt;
  std::memcpy(&h, file.data(), sizeof h);
  const std::string_view rest = file.substr(sizeof h);
  if (std::memcmp(h.magic, magic, sizeof h.magic) != 0 || h.key_bytes != key.size() ||
      !rest.starts_with(key) || h.data_bytes != rest.size() - key.size())
    return std::nullopt;
  const std::string_view data = rest.substr(key.size());
  if (hash_of(data) != h.data_hash) return std::nullopt;
  return data;
}

binary_cache::binary_cache(std::string folder) : folder_(std::move(folder)) {
  if (folder_ == "off") folder_.clear();
}

std::string binary_cache::path_of(std::string_view key) const {
  if (folder_.empty()) return "";
  char name[40];
  std::snprintf(name, sizeof name, "/%016llx.clbin", static_cast<unsigned long long>(hash_of(key)));
  return folder_ + name;
}

bool binary_cache::load(std::string_view key, std::vector<unsigned char>& out,
                        std::string& note) const {
  const std::string path = path_of(key);
  if (path.empty()) return false;
  const descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) {
    if (errno != ENOENT && errno != ENOTDIR) note = "cannot open " + path + ": " + reason();
    return false;
  }
  struct stat s{};
  if (fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode) || !only_ours(s)) {
    note = path + " is not a file that only this user can write; not used";
    return false;
  }
  std::vector<unsigned char> bytes;
  const auto size = static_cast<uint64_t>(s.st_size);
  bool whole = size <= most_bytes;
  if (whole) {
    bytes.resize(size);
    whole = read_all(file.get(), bytes.data(), size);
  }
  const auto data = whole ? read_kept(view_of(bytes), key) : std::nullopt;
  if (!data) {
    note = path + " is damaged; its kernels are compiled again";
    return false;
  }
  out.assign(data->begin(), data->end());
  return true;
}

bool binary_cache::store(std::string_view key, const std::vector<unsigned char>& data,
                         std::string& note) const {
  const std::string path = path_of(key);
  if (path.empty()) return false;
  const auto failed = [&](const std::string& what) {
    note = "compiled kernels are not kept: " + what + ": " + reason();
    return false;
  };
  if (!make_folder(folder_)) return failed("cannot make " + folder_);
  struct stat s{};
  if (stat(folder_.c_str(), &s) != 0) return failed("cannot look at " + folder_);
  if (!only_ours(s)) {
    note = "compiled kernels are not kept: others than this user can write to " + folder_;
    return false;
  }
  static std::atomic<uint32_t> count{0};
  const std::string beside =
      path + "." + std::to_string(getpid()) + "." + std::to_string(count.fetch_add(1));
  const descriptor file(
      open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return failed("cannot write " + beside);
  head h{};
  std::memcpy(h.magic, magic, sizeof h.magic);
  h.key_bytes = key.size();
  h.data_bytes = data.size();
  h.data_hash = hash_of(view_of(data));
  const bool written =
      write_all(file.get(), &h, sizeof h) && write_all(file.get(), key.data(), key.size()) &&
      write_all(file.get(), data.data(), data.size()) && rename(beside.c_str(), path.c_str()) == 0;
  if (written) return true;
  const bool told = failed("cannot write " + path);
  unlink(beside.c_str());
  return told;
}

}  // namespace bitnet::opencl
