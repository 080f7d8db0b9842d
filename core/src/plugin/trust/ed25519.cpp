#include "plugin/trust/ed25519.hpp"

#include <fmt/core.h>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <algorithm>
#include <span>

#include "plugin/codes/text.hpp"
#include "plugin/trust/hash.hpp"
#include "plugin/trust/openssl.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {
namespace {

using openssl::bio;
using openssl::digest_context;
using openssl::key_handle;
using openssl::no_password;
using openssl::own_errors;
using openssl::reader_of;
using openssl::text_in;
using openssl::unsigned_bytes;

std::unexpected<defect> unusable_key(const std::string& why) {
  return reject(code::trust_key, why);
}

checked<std::string> public_part(const EVP_PKEY* key) {
  if (key == nullptr || EVP_PKEY_get_id(key) != EVP_PKEY_ED25519)
    return unusable_key("holds no ed25519 key");
  std::string raw(key_bytes, '\0');
  std::size_t size = raw.size();
  if (EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(raw.data()), &size) != 1 ||
      size != key_bytes)
    return unusable_key("holds an unusable ed25519 key");
  return hexadecimal_of(raw);
}

checked<key_handle> private_key(const std::string& pem) {
  const bio in = reader_of(pem);
  key_handle key(in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_password, nullptr) : nullptr);
  if (!key) return unusable_key("holds no private key that can be read without a password");
  return key;
}

}  // namespace

bool is_hexadecimal(std::string_view text, std::size_t bytes) {
  return text.size() == 2 * bytes && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string bytes_of_hexadecimal(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  return out;
}

std::string hexadecimal_of(std::string_view bytes) {
  return hexadecimal(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

checked<std::string> read_public_key(const std::string& pem) {
  const own_errors scope;
  const bio in = reader_of(pem);
  const key_handle key(in ? PEM_read_bio_PUBKEY(in.get(), nullptr, no_password, nullptr) : nullptr);
  return public_part(key.get());
}

checked<std::string> public_key_of(const std::string& private_pem) {
  const own_errors scope;
  const auto key = private_key(private_pem);
  if (!key) return std::unexpected(key.error());
  return public_part(key->get());
}

checked<signed_message> sign_message(std::string_view message, const std::string& private_pem) {
  const own_errors scope;
  const auto key = private_key(private_pem);
  if (!key) return std::unexpected(key.error());
  auto id = public_part(key->get());
  if (!id) return std::unexpected(std::move(id.error()));
  std::string value(signature_bytes, '\0');
  std::size_t size = value.size();
  const digest_context c(EVP_MD_CTX_new());
  if (!c || EVP_DigestSignInit(c.get(), nullptr, nullptr, nullptr, key->get()) != 1 ||
      EVP_DigestSign(c.get(), reinterpret_cast<unsigned char*>(value.data()), &size,
                     unsigned_bytes(message), message.size()) != 1 ||
      size != signature_bytes)
    return unusable_key("holds a key that cannot sign");
  return signed_message{*std::move(id), std::move(value)};
}

bool is_signed_by(std::string_view message, std::string_view key, std::string_view value) {
  if (!is_hexadecimal(key, key_bytes) || value.size() != signature_bytes) return false;
  const own_errors scope;
  const std::string raw = bytes_of_hexadecimal(key);
  const key_handle handle(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, unsigned_bytes(raw), raw.size()));
  const digest_context c(EVP_MD_CTX_new());
  return handle && c &&
         EVP_DigestVerifyInit(c.get(), nullptr, nullptr, nullptr, handle.get()) == 1 &&
         EVP_DigestVerify(c.get(), unsigned_bytes(value), value.size(), unsigned_bytes(message),
                          message.size()) == 1;
}

checked<key_pair> make_key_pair() {
  const own_errors scope;
  const key_handle key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  const bio secret(BIO_new(BIO_s_mem()));
  const bio open(BIO_new(BIO_s_mem()));
  if (!key || !secret || !open ||
      PEM_write_bio_PKCS8PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                    nullptr) != 1 ||
      PEM_write_bio_PUBKEY(open.get(), key.get()) != 1)
    return unusable_key("a new ed25519 key cannot be made");
  return key_pair{text_in(secret.get()), text_in(open.get())};
}

checked<std::string> read_private_key(const std::filesystem::path& file) {
  const auto opened = open_trusted(file);
  if (!opened) return std::unexpected(opened.error());
  struct stat s{};
  if (::fstat(opened->fd.get(), &s) != 0 || (s.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return reject(code::trust_key,
                  fmt::format("{} may be read by others", printable(file.string(), 400)),
                  fmt::format("chmod 600 '{}'", printable(file.string(), 400)));
  auto pem = read_all(*opened, max_key_bytes);
  if (!pem) return reject(code::trust_key, pem.error().reason);
  return pem;
}

}  // namespace bitnet::plugin
