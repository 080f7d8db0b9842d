#include "binary_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

struct file_header {
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

// Owned by root or us, and not writable by others unless sticky, as /tmp is.
bool trusted(const struct stat& s) {
  if (s.st_uid != 0 && s.st_uid != geteuid()) return false;
  return S_ISLNK(s.st_mode) || (s.st_mode & (S_IWGRP | S_IWOTH)) == 0 ||
         (S_ISDIR(s.st_mode) && (s.st_mode & S_ISVTX) != 0);
}

// Opens the folder step by step from the root. Each step is checked before the next is opened or
// created. -1 with errno; EPERM: a step is not trusted.
int open_folder(const std::string& path) {
  int at = open(path.front() == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (std::size_t begin = 0; at >= 0 && begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string step = path.substr(begin, end - begin);
    begin = end + 1;
    if (step.empty() || step == ".") continue;
    const descriptor above(at);
    struct stat s{};
    if (mkdirat(above.get(), step.c_str(), 0700) != 0 && errno != EEXIST && errno != EROFS &&
        errno != EACCES)
      return -1;
    if (fstatat(above.get(), step.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return -1;
    errno = EPERM;
    if (!trusted(s)) return -1;
    at = openat(above.get(), step.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) return -1;
    const bool fine = fstat(at, &s) == 0 && trusted(s);  // fstat follows links, too
    if (!fine) {
      close(at);
      errno = EPERM;
      return -1;
    }
  }
  return at;
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
  file_header h{};
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
  const descriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) {
    if (errno != ENOENT && errno != ENOTDIR) note = "cannot open " + path + ": " + reason();
    return false;
  }
  struct stat s{};
  if (fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode) || !only_ours(s)) {
    note = path + " is not used: users other than this one can write it, or it is not a file";
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
  const descriptor folder(open_folder(folder_));
  struct stat s{};
  if ((folder.get() < 0 && errno == EPERM) ||
      (folder.get() >= 0 && (fstat(folder.get(), &s) != 0 || !only_ours(s)))) {
    note = "compiled kernels are not kept: users other than this one can write to " + folder_ +
           ", or replace it";
    return false;
  }
  if (folder.get() < 0) return failed("cannot make " + folder_);
  static std::atomic<uint32_t> count{0};
  const std::string name = path.substr(folder_.size() + 1);
  const std::string beside =
      name + "." + std::to_string(getpid()) + "." + std::to_string(count.fetch_add(1));
  const descriptor file(openat(folder.get(), beside.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return failed("cannot write " + beside);
  file_header h{};
  std::memcpy(h.magic, magic, sizeof h.magic);
  h.key_bytes = key.size();
  h.data_bytes = data.size();
  h.data_hash = hash_of(view_of(data));
  const bool written = write_all(file.get(), &h, sizeof h) &&
                       write_all(file.get(), key.data(), key.size()) &&
                       write_all(file.get(), data.data(), data.size()) &&
                       renameat(folder.get(), beside.c_str(), folder.get(), name.c_str()) == 0;
  if (written) return true;
  const bool logged = failed("cannot write " + path);
  unlinkat(folder.get(), beside.c_str(), 0);
  return logged;
}

}  // namespace bitnet::opencl
