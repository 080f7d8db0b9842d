#include "engine/pack_cache.hpp"

#define XXH_INLINE_ALL
#include <fmt/core.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/for_each_part.hpp"
#include "files/descriptor.hpp"
#include "files/new_file.hpp"
#include "gguf/bytes.hpp"
#include "gguf/text.hpp"
#include "plugin/trust/trust.hpp"
#include "system/limits.hpp"

namespace bitnet::engine {
namespace {

namespace fs = std::filesystem;
using gguf::quote;

constexpr std::string_view extension = ".packed";
constexpr uint64_t header_bytes = 4096;  // the form begins at a page
constexpr uint64_t chunk_bytes = uint64_t{4} << 20;

// At the start of a file; the key follows, then zeros, then the header's own checksum in its last 8
// bytes. Behind the form: the checksum of each chunk.
struct header {
  char magic[8];
  uint64_t form_bytes;
  uint64_t chunk;
  uint64_t key_bytes;
};
constexpr char magic[8] = {'B', 'N', 'P', 'A', 'C', 'K', '0', '1'};
constexpr uint64_t longest_key = header_bytes - sizeof(header) - sizeof(uint64_t);

uint64_t chunks_of(uint64_t bytes) {
  return (bytes + chunk_bytes - 1) / chunk_bytes;
}

uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::span<const std::byte> chunk_of(std::span<const std::byte> form, uint64_t i) {
  return form.subspan(i * chunk_bytes, std::min(chunk_bytes, form.size() - i * chunk_bytes));
}

std::unexpected<failure> bad(const char* what) {
  return fail(BITNET_BAD_DATA, what);
}

std::vector<std::byte> make_header(const std::string& key, uint64_t form_bytes) {
  std::vector<std::byte> out(header_bytes);
  header fields{};
  std::memcpy(fields.magic, magic, sizeof magic);
  fields.form_bytes = form_bytes;
  fields.chunk = chunk_bytes;
  fields.key_bytes = key.size();
  std::memcpy(out.data(), &fields, sizeof fields);
  std::memcpy(out.data() + sizeof fields, key.data(), key.size());
  const uint64_t sum = checksum(std::span(out).first(header_bytes - sizeof(uint64_t)));
  std::memcpy(out.data() + header_bytes - sizeof sum, &sum, sizeof sum);
  return out;
}

// Whether only this user can write the file.
bool is_ours(const struct stat& info) {
  return S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

result<std::span<const std::byte>> read_packed(std::span<const std::byte> file,
                                               const std::string& key) {
  if (file.size() < header_bytes) return bad("it is cut off");
  const auto fields = gguf::load<header>(file);
  const auto sum = gguf::load<uint64_t>(file.subspan(header_bytes - sizeof(uint64_t)));
  if (std::memcmp(fields.magic, magic, sizeof magic) != 0 || fields.chunk != chunk_bytes ||
      fields.key_bytes > longest_key ||
      sum != checksum(file.first(header_bytes - sizeof(uint64_t))))
    return bad("its header is damaged");
  if (std::string_view(reinterpret_cast<const char*>(file.data()) + sizeof fields,
                       fields.key_bytes) != key)
    return bad("it belongs to another model");
  if (fields.form_bytes > file.size() - header_bytes) return bad("it is cut off");
  const uint64_t n = chunks_of(fields.form_bytes);
  if (file.size() - header_bytes - fields.form_bytes != n * sizeof(uint64_t))
    return bad("it is cut off");
  const auto form = file.subspan(header_bytes, fields.form_bytes);
  const auto sums = file.subspan(header_bytes + fields.form_bytes);
  std::atomic<bool> same{true};
  base::for_each_part(n, [&](uint64_t i) {
    if (gguf::load<uint64_t>(sums.subspan(i * sizeof(uint64_t))) != checksum(chunk_of(form, i)))
      same = false;
  });
  if (!same) return bad("a checksum is wrong");
  return form;
}

fs::path pack_cache::file_of(const std::string& key) const {
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  std::array<char, 33> name{};
  std::snprintf(name.data(), name.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return options_.folder / (std::string(name.data()) + std::string(extension));
}

std::optional<pack_cache::found> pack_cache::find(const std::string& key) const {
  const auto folder = plugin::open_trusted_directory(options_.folder);
  if (!folder) {
    if (folder.error().code != plugin::code::trust_missing)
      note(fmt::format("packed weights are not used: {}", folder.error().reason));
    return std::nullopt;
  }
  const fs::path path = file_of(key);
  const std::string name = path.filename().string();
  files::descriptor file(openat(folder->get(), name.c_str(),
                                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::nullopt;
  struct stat info{};
  const bool opened = file && fstat(file.get(), &info) == 0;
  if (!opened || !is_ours(info)) {
    note(fmt::format("packed weights {} are not used: {}; remove it", quote(path.native()),
                     !opened && errno == ELOOP ? "it is a link"
                     : !opened                 ? bitnet::limits::reason(errno)
                     : !S_ISREG(info.st_mode)  ? "it is no regular file"
                                               : "another user could write the file"));
    return std::nullopt;
  }
  futimens(file.get(), nullptr);  // marks it as used now; a failure does not matter
  auto mapped = gguf::mapping::adopt(file.release(), path);
  auto form = mapped ? read_packed(mapped->bytes(), key)
                     : result<std::span<const std::byte>>(std::unexpected(mapped.error()));
  if (auto whole = mapped ? mapped->check_size() : result<void>(); form && !whole)
    form = std::unexpected(whole.error());
  if (!form) {
    note(fmt::format("packed weights {} are made again: {}", quote(path.native()),
                     form.error().message));
    unlinkat(folder->get(), name.c_str(), 0);
    return std::nullopt;
  }
  return found{std::move(*mapped), *form};
}

void pack_cache::keep(const std::string& key, std::span<const std::byte> form) const {
  if (form.size() > options_.max_bytes) {
    note(fmt::format("packed weights of {} bytes are not kept: the cache may have {}", form.size(),
                     options_.max_bytes));
    return;
  }
  if (key.size() > longest_key)
    return note("packed weights are not kept: the model's name is too long");
  const auto folder =
      plugin::open_trusted_directory(options_.folder, plugin::missing_directory::make);
  if (!folder) return note(fmt::format("packed weights are not kept: {}", folder.error().reason));
  std::vector<uint64_t> sums(chunks_of(form.size()));
  base::for_each_part(sums.size(), [&](uint64_t i) { sums[i] = checksum(chunk_of(form, i)); });
  const auto written = [&]() -> files::new_file::outcome {
    auto file = files::new_file::create_in(folder->get(), file_of(key).filename().string(),
                                           {.mode = S_IRUSR | S_IWUSR, .regular_only = true});
    if (!file) return std::unexpected(file.error());
    auto ok = file->write(make_header(key, form.size()));
    if (ok) ok = file->write(form);
    if (ok) ok = file->write(std::as_bytes(std::span(sums)));
    // If a crash leaves it unwritten, the checksums show it.
    if (ok) ok = file->finish(files::new_file::flush::no);
    return ok;
  }();
  if (!written)
    return note(fmt::format("packed weights are not kept: {}: {}", quote(file_of(key).native()),
                            written.error().text));
  make_room(folder->get());
}

void pack_cache::make_room(int folder) const {
  struct entry {
    std::string name;
    int64_t used_ns;
    uint64_t bytes;
  };
  // closedir() closes it, so it must be a descriptor of its own.
  const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(fdopendir(own), closedir);
  if (!listed) {
    close(own);
    return;
  }
  std::vector<entry> all;
  uint64_t total = 0;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread reads this stream
  while (const dirent* one = readdir(listed.get())) {
    const std::string name = one->d_name;
    struct stat s{};
    if (!name.ends_with(extension) || fstatat(folder, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0 ||
        !is_ours(s))
      continue;
    constexpr int64_t second = 1'000'000'000;
    all.push_back(
        {name, s.st_mtim.tv_sec * second + s.st_mtim.tv_nsec, static_cast<uint64_t>(s.st_size)});
    total += all.back().bytes;
  }
  std::ranges::sort(all, {}, &entry::used_ns);
  for (const entry& one : all) {
    if (total <= options_.max_bytes) return;
    if (unlinkat(folder, one.name.c_str(), 0) == 0) total -= one.bytes;
  }
}

}  // namespace bitnet::engine
