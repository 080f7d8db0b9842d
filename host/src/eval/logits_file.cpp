#include "eval/logits_file.hpp"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "text/printable.hpp"

namespace bitnet::host::eval {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::array<char, 8> magic{'B', 'N', 'L', 'O', 'G', 'I', 'T', 'S'};
constexpr uint32_t longest_name = 256;
constexpr uint32_t most = 1 << 24;  // tokens in a vocabulary or chunk, and chunks

struct raw_header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t n_vocab;
  uint32_t n_context;
  uint32_t n_chunks;
  uint32_t name_bytes;
  uint32_t reserved;  // 0
};
static_assert(sizeof(raw_header) == 32);

using outcome = std::expected<void, std::string>;

std::string_view bytes_of(const auto& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
}

uint64_t hash_of(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

// Hashes row by row, so that the result does not depend on how many rows come at a time.
uint64_t hash_of_rows(std::span<const float> rows, uint32_t n_vocab, uint64_t seed) {
  for (; !rows.empty(); rows = rows.subspan(n_vocab))
    seed = hash_of(bytes_of(rows.first(n_vocab)), seed);
  return seed;
}

uint64_t hash_of_header(const raw_header& raw, const logits_header& header) {
  const uint64_t begin = hash_of({reinterpret_cast<const char*>(&raw), sizeof raw}, 0);
  return hash_of(bytes_of(header.tokens), hash_of(header.model, begin));
}

raw_header raw_of(const logits_header& header) {
  return {magic,
          logits_version,
          header.n_vocab,
          header.n_context,
          header.n_chunks,
          static_cast<uint32_t>(header.model.size()),
          0};
}

// The sizes have passed check_sizes(), so the result is below 2^80.
double bytes_behind_header(const raw_header& raw) {
  const double chunk = 4.0 * raw.n_vocab * chunk_rule{raw.n_context}.n_scored() + 8;
  return raw.name_bytes + 4.0 * raw.n_chunks * raw.n_context + 8 + raw.n_chunks * chunk;
}

outcome check_sizes(const raw_header& raw) {
  if (raw.magic != magic)
    return std::unexpected("it is no file of `bitnet eval kld --save-logits`");
  if (raw.version != logits_version)
    return std::unexpected(
        fmt::format("its form has version {}, this program reads version {}: "
                    "save the logits again",
                    raw.version, logits_version));
  const auto fits = [](uint32_t n, uint32_t least) { return n >= least && n <= most; };
  if (!fits(raw.n_vocab, 1) || !fits(raw.n_context, 4) || !fits(raw.n_chunks, 1) ||
      raw.name_bytes > longest_name || raw.reserved != 0)
    return std::unexpected(
        fmt::format("its header is damaged: {} tokens in the vocabulary, {} chunks of {} tokens, a "
                    "name of {} bytes",
                    raw.n_vocab, raw.n_chunks, raw.n_context, raw.name_bytes));
  return {};
}

}  // namespace

// ---- writing -----------------------------------------------------------------------------------

std::expected<logits_writer, std::string> logits_writer::create(const std::string& path,
                                                                const logits_header& header) {
  auto file = files::new_file::create(path);
  if (!file) return std::unexpected(file.error().text);
  logits_writer out(*std::move(file), header.n_vocab);
  logits_header named = header;
  named.model.resize(std::min<std::size_t>(named.model.size(), longest_name));
  const raw_header raw = raw_of(named);
  const std::array hash{hash_of_header(raw, named)};
  for (const std::string_view part :
       {std::string_view(reinterpret_cast<const char*>(&raw), sizeof raw),
        std::string_view(named.model), bytes_of(named.tokens), bytes_of(hash)})
    if (auto done = out.put(part); !done) return std::unexpected(done.error());
  return out;
}

outcome logits_writer::put(std::string_view bytes) {
  if (auto done = file_.write(bytes); !done) return std::unexpected(done.error().text);
  return {};
}

outcome logits_writer::write(std::span<const float> rows) {
  hash_ = hash_of_rows(rows, n_vocab_, hash_);
  return put(bytes_of(rows));
}

outcome logits_writer::end_chunk() {
  const std::array hash{hash_};
  hash_ = ++chunk_;
  return put(bytes_of(hash));
}

outcome logits_writer::finish() {
  if (auto done = file_.finish(); !done) return std::unexpected(done.error().text);
  return {};
}

// ---- reading -----------------------------------------------------------------------------------

std::expected<logits_reader, std::string> logits_reader::open(const std::string& path) {
  files::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return std::unexpected(fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat about{};
  if (::fstat(file.get(), &about) != 0)
    return std::unexpected(fmt::format("cannot be read: {}", std::strerror(errno)));
  if (!S_ISREG(about.st_mode)) return std::unexpected("it is no regular file");
  logits_reader out(std::move(file));
  if (auto done = out.read_header(static_cast<uint64_t>(about.st_size)); !done)
    return std::unexpected(done.error());
  return out;
}

outcome logits_reader::get(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::read(file_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::unexpected(fmt::format("cannot be read: {}", std::strerror(errno)));
    if (n == 0) return std::unexpected("it ends too early");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

outcome logits_reader::read_header(uint64_t file_bytes) {
  raw_header raw{};
  if (file_bytes < sizeof raw)
    return std::unexpected("it is no file of `bitnet eval kld --save-logits`");
  if (auto done = get(std::as_writable_bytes(std::span(&raw, 1))); !done) return done;
  if (auto done = check_sizes(raw); !done) return done;
  const double wanted = sizeof raw + bytes_behind_header(raw);
  if (wanted != static_cast<double>(file_bytes))
    return std::unexpected(fmt::format(
        "its header asks for {:.0f} bytes, it has {}: it was cut or damaged", wanted, file_bytes));
  header_.n_vocab = raw.n_vocab;
  header_.n_context = raw.n_context;
  header_.n_chunks = raw.n_chunks;
  header_.model.resize(raw.name_bytes);
  header_.tokens.resize(std::size_t{raw.n_chunks} * raw.n_context);  // at most the file's size
  std::array<uint64_t, 1> hash{};
  if (auto done = get(std::as_writable_bytes(std::span(header_.model))); !done) return done;
  if (auto done = get(std::as_writable_bytes(std::span(header_.tokens))); !done) return done;
  if (auto done = get(std::as_writable_bytes(std::span(hash))); !done) return done;
  if (hash[0] != hash_of_header(raw, header_))
    return std::unexpected("the checksum of its header and tokens is wrong: it was damaged");
  const auto bad = std::ranges::find_if(header_.tokens, [&](bitnet_token id) {
    return id < 0 || static_cast<uint32_t>(id) >= raw.n_vocab;
  });
  if (bad != header_.tokens.end())
    return std::unexpected(
        fmt::format("token id {} is not in its vocabulary of {} tokens", *bad, raw.n_vocab));
  header_.model = text::printable(header_.model);
  return {};
}

outcome logits_reader::read(std::span<float> rows) {
  if (auto done = get(std::as_writable_bytes(rows)); !done) return done;
  if (!std::ranges::all_of(rows, [](float x) { return std::isfinite(x); }))
    return std::unexpected(
        fmt::format("a logit of chunk {} is no finite number: it was damaged", chunk_ + 1));
  hash_ = hash_of_rows(rows, header_.n_vocab, hash_);
  return {};
}

outcome logits_reader::end_chunk() {
  std::array<uint64_t, 1> hash{};
  if (auto done = get(std::as_writable_bytes(std::span(hash))); !done) return done;
  if (hash[0] != hash_)
    return std::unexpected(
        fmt::format("the checksum of chunk {} is wrong: it was damaged", chunk_ + 1));
  hash_ = ++chunk_;
  return {};
}

}  // namespace bitnet::host::eval
