#include "http/access.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "files/descriptor.hpp"
#include "text/incoming.hpp"
#include "text/printable.hpp"

namespace bitnet::host::http {
namespace {

// Bytes of an API key. Each key that a client sends is hashed, and this bounds that work.
constexpr std::size_t longest_key = 512;
// Bytes of the file of keys: room for 2000 of the longest keys. Larger files are rejected before
// they are read whole, since they are probably named by mistake.
constexpr std::size_t longest_file = std::size_t{1024} * 1024;

bool digest_of(std::string_view key, std::array<unsigned char, 32>& out) {
  unsigned size = 0;
  return EVP_Digest(key.data(), key.size(), out.data(), &size, EVP_sha256(), nullptr) == 1 &&
         size == out.size();
}

result<std::string> read_file(const std::string& path) {
  const auto failed = [&](std::string_view why) {
    return fail(exit_code::usage, fmt::format("the file of API keys {} cannot be read: {}",
                                              text::printable(path), why));
  };
  const files::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return failed(std::strerror(errno));
  std::string out;
  std::array<char, 4096> part{};  // bytes of a read
  for (;;) {
    const ssize_t n = ::read(file.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(std::strerror(errno));
    if (n == 0) break;
    out.append(part.data(), static_cast<std::size_t>(n));
    if (out.size() > longest_file) return failed("it is larger than 1 MiB");
  }
  auto content = text::incoming(std::move(out));
  if (!content) return failed(content.error());
  return *std::move(content);
}

std::string_view without_blanks(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
    line.remove_suffix(1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  return line;
}

// In ASCII a capital letter and its small one differ in the bit 0x20 alone.
bool same_but_for_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

}  // namespace

result<void> api_keys::add(std::string_view key) {
  const auto is_visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (key.empty() || key.size() > longest_key || !std::ranges::all_of(key, is_visible))
    return fail(exit_code::usage,
                fmt::format("an API key has 1 to {} visible ASCII characters; one of {} bytes is "
                            "no key",
                            longest_key, key.size()));
  digest d{};
  if (!digest_of(key, d))
    return fail(exit_code::failure, "OpenSSL cannot compute SHA-256, by which keys are compared");
  digests_.push_back(d);
  return {};
}

result<void> api_keys::add_file(const std::string& path) {
  const auto content = read_file(path);
  if (!content) return std::unexpected(content.error());
  std::string_view rest = *content;
  const std::size_t before = size();
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = without_blanks(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.starts_with('#')) continue;
    if (auto ok = add(line); !ok)
      return fail(ok.error().exit_code,
                  fmt::format("{}:{}: {}", text::printable(path), number, ok.error().message));
  }
  if (size() == before)
    return fail(exit_code::usage,
                fmt::format("the file of API keys {} holds none; write a key in a line",
                            text::printable(path)));
  return {};
}

bool api_keys::has(std::string_view key) const {
  digest d{};
  if (key.size() > longest_key || !digest_of(key, d)) return false;
  bool found = false;
  for (const digest& one : digests_) found |= CRYPTO_memcmp(one.data(), d.data(), d.size()) == 0;
  return found;
}

bool api_keys::admits(const request& asked) const {
  constexpr std::string_view scheme = "bearer ";
  const std::string_view given = asked.value_of("authorization");
  if (given.size() > scheme.size() && same_but_for_case(given.substr(0, scheme.size()), scheme))
    return has(without_blanks(given.substr(scheme.size())));
  return asked.has("x-api-key") && has(asked.value_of("x-api-key"));
}

result<void> origin_list::add(std::string_view origin) {
  if (origin == "*") {
    all_ = true;
    return {};
  }
  const auto host = origin.find("://");
  const bool is_origin = host != std::string_view::npos && host > 0 && origin.size() > host + 3 &&
                         origin.find_first_of("/ \t,*?#@", host + 3) == std::string_view::npos;
  if (!is_origin)
    return fail(exit_code::usage,
                fmt::format("'{}' is no origin: write SCHEME://HOST or SCHEME://HOST:PORT, without "
                            "a path, or * for all",
                            text::printable(origin)));
  origins_.emplace_back(origin);
  return {};
}

std::string origin_list::allowed(std::string_view origin) const {
  if (all_) return "*";
  return std::ranges::find(origins_, origin) == origins_.end() ? "" : std::string(origin);
}

}  // namespace bitnet::host::http
