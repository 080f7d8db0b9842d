#include "gguf/writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gguf/text.hpp"

namespace bitnet::gguf {
namespace {

void put_raw(std::vector<std::byte>& to, const void* from, size_t size) {
  const size_t before = to.size();
  to.resize(before + size);
  if (size != 0) std::memcpy(to.data() + before, from, size);
}

template <class T>
void put(std::vector<std::byte>& to, T x) {
  put_raw(to, &x, sizeof x);
}

void put_text(std::vector<std::byte>& to, std::string_view text) {
  put<uint64_t>(to, text.size());
  put_raw(to, text.data(), text.size());
}

uint64_t padded(uint64_t size) {
  return (size + written_alignment - 1) / written_alignment * written_alignment;
}

}  // namespace

void metadata_builder::begin(std::string_view key, value_type type) {
  ++count_;
  put_text(bytes_, key);
  put(bytes_, static_cast<uint32_t>(type));
}

void metadata_builder::text(std::string_view key, std::string_view x) {
  begin(key, value_type::string);
  put_text(bytes_, x);
}

void metadata_builder::u32(std::string_view key, uint32_t x) {
  begin(key, value_type::u32);
  put(bytes_, x);
}

void metadata_builder::f32(std::string_view key, float x) {
  begin(key, value_type::f32);
  put(bytes_, x);
}

void metadata_builder::boolean(std::string_view key, bool x) {
  begin(key, value_type::boolean);
  put<uint8_t>(bytes_, x ? 1 : 0);
}

void metadata_builder::i32s(std::string_view key, std::span<const int32_t> x) {
  begin(key, value_type::array);
  put(bytes_, static_cast<uint32_t>(value_type::i32));
  put<uint64_t>(bytes_, x.size());
  put_raw(bytes_, x.data(), x.size_bytes());
}

void metadata_builder::f32s(std::string_view key, std::span<const float> x) {
  begin(key, value_type::array);
  put(bytes_, static_cast<uint32_t>(value_type::f32));
  put<uint64_t>(bytes_, x.size());
  put_raw(bytes_, x.data(), x.size_bytes());
}

void metadata_builder::texts(std::string_view key, std::span<const std::string> x) {
  begin(key, value_type::array);
  put(bytes_, static_cast<uint32_t>(value_type::string));
  put<uint64_t>(bytes_, x.size());
  for (const std::string& one : x) put_text(bytes_, one);
}

void metadata_builder::copy(std::string_view key, const value& content) {
  begin(key, content.type);
  if (content.type == value_type::string) put<uint64_t>(bytes_, content.bytes.size());
  if (content.type == value_type::array) {
    put(bytes_, static_cast<uint32_t>(content.element));
    put<uint64_t>(bytes_, content.count);
  }
  put_raw(bytes_, content.bytes.data(), content.bytes.size());
}

std::vector<std::byte> header_of(const metadata_builder& metadata,
                                 std::span<const planned_tensor> tensors) {
  std::vector<std::byte> out;
  put_raw(out, "GGUF", 4);
  put<uint32_t>(out, 3);
  put<uint64_t>(out, tensors.size());
  put<uint64_t>(out, metadata.count());
  put_raw(out, metadata.bytes().data(), metadata.bytes().size());
  uint64_t offset = 0;
  for (const planned_tensor& t : tensors) {
    put_text(out, t.name);
    put(out, static_cast<uint32_t>(t.ne.size()));
    for (const uint64_t n : t.ne) put(out, n);
    put(out, t.type);
    put(out, offset);
    offset += padded(t.bytes);
  }
  out.resize(padded(out.size()));
  return out;
}

result<file_writer> file_writer::create(const std::filesystem::path& path, bool overwrite) {
  file_writer w;
  w.path_ = path;
  w.overwrite_ = overwrite;
  std::error_code ignored;
  if (!overwrite && std::filesystem::exists(std::filesystem::symlink_status(path, ignored)))
    return fail(BITNET_INVALID_ARGUMENT,
                say(quote(path.native()), " exists; name another file, or set overwrite"));
  auto folder = path.parent_path();
  if (folder.empty()) folder = ".";
  constexpr mode_t mode = 0666;  // the umask decides
  w.descriptor_ = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (w.descriptor_ < 0 && errno != ENOENT && errno != EACCES && errno != ENOTDIR) {
    w.part_ = path;
    w.part_ += say(".", ::getpid(), ".part");
    w.descriptor_ = ::open(w.part_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
  }
  if (w.descriptor_ < 0) {
    w.part_.clear();
    return w.failed("cannot be created");
  }
  return w;
}

file_writer::file_writer(file_writer&& other) noexcept
    : path_(std::move(other.path_)),
      part_(std::exchange(other.part_, {})),
      overwrite_(other.overwrite_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      written_(other.written_) {}

file_writer::~file_writer() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!part_.empty()) ::unlink(part_.c_str());
}

std::unexpected<failure> file_writer::failed(const char* doing) const {
  const int why = errno;
  const bool wrong_path = why == ENOENT || why == ENOTDIR || why == EACCES || why == EROFS;
  return fail(wrong_path ? BITNET_INVALID_ARGUMENT : BITNET_IO,
              say(quote(path_.native()), " ", doing, ": ", std::strerror(why)));
}

result<void> file_writer::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("cannot be written");
    written_ += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

result<void> file_writer::pad() {
  constexpr std::array<std::byte, written_alignment> zeros{};
  return write(std::span(zeros).first(padded(written_) - written_));
}

std::filesystem::path file_writer::readable_path() const {
  return say("/proc/self/fd/", descriptor_);
}

result<void> file_writer::finish(flush to_disk) {
  if (to_disk == flush::yes && ::fsync(descriptor_) != 0)
    return failed("cannot be flushed to the disk");
  if (part_.empty()) {
    // An unnamed file can be given a name, but not one that is taken: the name is moved then.
    const std::filesystem::path own = readable_path();
    if (::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0) return {};
    if (errno != EEXIST || !overwrite_) return failed("cannot be given its name");
    std::filesystem::path beside = path_;
    beside += say(".", ::getpid(), ".part");
    if (::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, beside.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return failed("cannot be given its name");
    part_ = beside;
  }
  if (!overwrite_) {
    if (::link(part_.c_str(), path_.c_str()) != 0) return failed("cannot be given its name");
    return {};  // the destructor removes the other name
  }
  if (::rename(part_.c_str(), path_.c_str()) != 0) return failed("cannot be given its name");
  part_.clear();
  return {};
}

}  // namespace bitnet::gguf
