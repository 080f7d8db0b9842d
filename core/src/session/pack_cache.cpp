#include "session/pack_cache.hpp"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "gguf/bytes.hpp"
#include "gguf/text.hpp"
#include "gguf/writer.hpp"

namespace bitnet::session {
namespace {

namespace fs = std::filesystem;
using gguf::quote;
using gguf::say;

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

// Runs visit(i) for each chunk on a few threads: this is as fast as memory can be read.
template <class Visit>
void for_each_chunk(uint64_t n, const Visit& visit) {
  std::atomic<uint64_t> next{0};
  const auto work = [&] {
    for (uint64_t i = next.fetch_add(1); i < n; i = next.fetch_add(1)) visit(i);
  };
  constexpr unsigned most_threads = 4;
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, most_threads);
  std::vector<std::jthread> others;
  for (unsigned t = 1; t < threads && t < n; ++t) others.emplace_back(work);
  work();
}

std::unexpected<failure> bad(const char* what) {
  return fail(BITNET_BAD_DATA, what);
}

std::vector<std::byte> make_header(const std::string& key, uint64_t form_bytes) {
  std::vector<std::byte> out(header_bytes);
  header h{};
  std::memcpy(h.magic, magic, sizeof magic);
  h.form_bytes = form_bytes;
  h.chunk = chunk_bytes;
  h.key_bytes = key.size();
  std::memcpy(out.data(), &h, sizeof h);
  std::memcpy(out.data() + sizeof h, key.data(), key.size());
  const uint64_t sum = checksum(std::span(out).first(header_bytes - sizeof(uint64_t)));
  std::memcpy(out.data() + header_bytes - sizeof sum, &sum, sizeof sum);
  return out;
}

// Whether a file is ours alone to write.
bool is_ours(const fs::path& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

result<std::span<const std::byte>> read_packed(std::span<const std::byte> file,
                                               const std::string& key) {
  if (file.size() < header_bytes) return bad("it is cut off");
  const auto h = gguf::load<header>(file);
  const auto sum = gguf::load<uint64_t>(file.subspan(header_bytes - sizeof(uint64_t)));
  if (std::memcmp(h.magic, magic, sizeof magic) != 0 || h.chunk != chunk_bytes ||
      h.key_bytes > longest_key || sum != checksum(file.first(header_bytes - sizeof(uint64_t))))
    return bad("its header is damaged");
  if (std::string_view(reinterpret_cast<const char*>(file.data()) + sizeof h, h.key_bytes) != key)
    return bad("it belongs to another model");
  if (h.form_bytes > file.size() - header_bytes) return bad("it is cut off");
  const uint64_t n = chunks_of(h.form_bytes);
  if (file.size() - header_bytes - h.form_bytes != n * sizeof(uint64_t))
    return bad("it is cut off");
  const auto form = file.subspan(header_bytes, h.form_bytes);
  const auto sums = file.subspan(header_bytes + h.form_bytes);
  std::atomic<bool> same{true};
  for_each_chunk(n, [&](uint64_t i) {
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
  const fs::path path = file_of(key);
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return std::nullopt;
  if (!is_ours(path)) {
    note(say("packed weights ", quote(path.native()),
             " are not used: somebody else could write the file; remove it"));
    return std::nullopt;
  }
  auto mapped = gguf::mapping::open(path);
  auto form = mapped ? read_packed(mapped->bytes(), key)
                     : result<std::span<const std::byte>>(std::unexpected(mapped.error()));
  if (!form) {
    note(say("packed weights ", quote(path.native()), " are made again: ", form.error().message));
    fs::remove(path, error);
    return std::nullopt;
  }
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now; whether it works does not matter
  return found{std::move(*mapped), *form};
}

void pack_cache::keep(const std::string& key, std::span<const std::byte> form) const {
  if (form.size() > options_.max_bytes) {
    note(say("packed weights of ", form.size(), " bytes are not kept: the cache may have ",
             options_.max_bytes));
    return;
  }
  std::error_code error;
  fs::create_directories(options_.folder, error);
  fs::permissions(options_.folder, fs::perms::owner_all, error);
  std::vector<uint64_t> sums(chunks_of(form.size()));
  for_each_chunk(sums.size(), [&](uint64_t i) { sums[i] = checksum(chunk_of(form, i)); });
  const auto written = [&]() -> result<void> {
    if (key.size() > longest_key) return fail(BITNET_UNSUPPORTED, "the model's name is too long");
    auto file = gguf::file_writer::create(file_of(key), true);
    if (!file) return std::unexpected(file.error());
    auto ok = file->write(make_header(key, form.size()));
    if (ok) ok = file->write(form);
    if (ok) ok = file->write(std::as_bytes(std::span(sums)));
    // What a crash leaves unwritten is noticed by the checksums.
    if (ok) ok = file->finish(gguf::file_writer::flush::no);
    return ok;
  }();
  if (!written) return note("packed weights are not kept: " + written.error().message);
  make_room();
}

void pack_cache::make_room() const {
  struct entry {
    fs::path path;
    fs::file_time_type used;
    uint64_t bytes;
  };
  std::vector<entry> all;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(options_.folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() != extension || !is_ours(it->path())) continue;
    std::error_code gone;
    const entry one{it->path(), it->last_write_time(gone), it->file_size(gone)};
    if (gone) continue;
    all.push_back(one);
    total += one.bytes;
  }
  std::ranges::sort(all, {}, &entry::used);
  for (const entry& one : all) {
    if (total <= options_.max_bytes) return;
    if (fs::remove(one.path, error)) total -= one.bytes;
  }
}

}  // namespace bitnet::session
