#include "receipt/digest.hpp"

#include <fmt/core.h>

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "files/new_file.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/trust/ed25519.hpp"
#include "plugin/trust/hash.hpp"
#include "plugin/trust/openssl.hpp"
#include "plugin/trust/trust.hpp"
#include "system/limits.hpp"

namespace bitnet::receipt {
namespace {

constexpr std::size_t digest_bytes = 32;
constexpr std::string_view sum_begins = "bitnet file sum 1\n";
constexpr uint64_t longest_sum_file = 4096;
// Reading a smaller file is faster than a look-up of its sum.
constexpr uint64_t smallest_remembered = uint64_t{1} << 20;

std::string name_of(const open_file& file) {
  return plugin::sha256_of(std::as_bytes(std::span(file.identity.data(), file.identity.size())))
             .substr(0, digest_bytes) +
         ".sum";
}

std::string sum_text(const open_file& file, std::string_view sum) {
  return fmt::format("{}{}\n{}\n", sum_begins, file.identity, sum);
}

}  // namespace

// OpenSSL fails here only if memory is exhausted, since SHA-256 is built in.
struct sha256::state {
  openssl::digest_context context{EVP_MD_CTX_new()};
};

sha256::sha256() : state_(std::make_unique<state>()) {
  if (!state_->context || EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
}

sha256::~sha256() = default;

void sha256::add(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) != 1)
    throw std::bad_alloc();
}

void sha256::add(std::string_view text) {
  add(std::as_bytes(std::span(text.data(), text.size())));
}

std::string sha256::bytes() {
  std::string out(digest_bytes, '\0');
  if (EVP_DigestFinal_ex(state_->context.get(), reinterpret_cast<unsigned char*>(out.data()),
                         nullptr) != 1)
    throw std::bad_alloc();
  return out;
}

std::string sha256::hex() {
  return plugin::hexadecimal_of(bytes());
}

// Reads in pieces: the pages of a mapping would stay in memory.
result<std::string> sha256_of(const open_file& file) {
  sha256 sum;
  std::vector<std::byte> piece(std::size_t{1} << 20);
  for (uint64_t at = 0; at < file.size_bytes;) {
    const ssize_t n = ::pread(file.descriptor, piece.data(), piece.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return bad_data(fmt::format("{}: expected {} bytes, found {}: {}",
                                  plugin::printable(file.path.string(), 400), file.size_bytes, at,
                                  n < 0 ? limits::reason(errno) : "the file was changed"));
    const auto got = std::min(static_cast<uint64_t>(n), file.size_bytes - at);
    sum.add(std::span(piece).first(static_cast<std::size_t>(got)));
    at += got;
  }
  return sum.hex();
}

result<std::string> remembered_sums::of(const open_file& file) const {
  const bool is_kept =
      !folder_.empty() && !file.identity.empty() && file.size_bytes >= smallest_remembered;
  if (is_kept)
    if (std::string known = recall(file); !known.empty()) return known;
  auto sum = sha256_of(file);
  if (sum && is_kept) remember(file, *sum);
  return sum;
}

std::string remembered_sums::recall(const open_file& file) const {
  const auto opened = plugin::open_trusted(folder_ / name_of(file));
  if (!opened) return "";
  const auto text = plugin::read_all(*opened, longest_sum_file);
  if (!text || text->size() < 2 * digest_bytes + 1) return "";
  std::string sum = text->substr(text->size() - 2 * digest_bytes - 1, 2 * digest_bytes);
  return plugin::is_sha256(sum) && *text == sum_text(file, sum) ? sum : "";
}

// A folder that cannot be written is no error: the file is read again next time.
void remembered_sums::remember(const open_file& file, const std::string& sum) const {
  const auto folder = plugin::open_trusted_directory(folder_, plugin::missing_directory::make);
  if (!folder) return;
  files::write_options how;
  how.mode = 0600;
  how.regular_only = true;
  auto out = files::new_file::create_in(folder->get(), name_of(file), how);
  if (!out || !out->write(sum_text(file, sum))) return;
  static_cast<void>(out->finish(files::new_file::flush::no));
}

}  // namespace bitnet::receipt
