#include "plugin/trust/signature.hpp"

#include <fmt/core.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include "files/new_file.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/trust/file_map.hpp"
#include "plugin/trust/hash.hpp"
#include "system/limits.hpp"

namespace bitnet::plugin {
namespace {

constexpr std::size_t key_bytes = 32;
constexpr std::size_t signature_bytes = 64;

struct bio_closer {
  void operator()(BIO* b) const { BIO_free(b); }
};
struct key_closer {
  void operator()(EVP_PKEY* k) const { EVP_PKEY_free(k); }
};
struct context_closer {
  void operator()(EVP_MD_CTX* c) const { EVP_MD_CTX_free(c); }
};
using bio = std::unique_ptr<BIO, bio_closer>;
using key_handle = std::unique_ptr<EVP_PKEY, key_closer>;
using context = std::unique_ptr<EVP_MD_CTX, context_closer>;

const unsigned char* unsigned_bytes(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string hexadecimal_text(const std::string& raw) {
  return hexadecimal(std::as_bytes(std::span(raw.data(), raw.size())));
}

bool is_hexadecimal(std::string_view text, std::size_t bytes) {
  return text.size() == 2 * bytes && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Of text that is_hexadecimal().
std::string raw_bytes(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  return out;
}

std::string statement(const std::string& sha256) {
  return fmt::format("bitnet-signature: 1\nsha256: {}\n", sha256);
}

std::unexpected<defect> bad_signature(const std::string& why, const std::string& hint = "") {
  return reject(code::trust_signature, why, hint);
}

std::unexpected<defect> bad_key(const std::string& why) {
  return reject(code::trust_key, why);
}

// What OpenSSL complains about while this lives is not left in the queue of the thread, which
// belongs to the program.
class own_errors {
 public:
  own_errors() { ERR_set_mark(); }
  ~own_errors() { ERR_pop_to_mark(); }
  own_errors(const own_errors&) = delete;
  own_errors& operator=(const own_errors&) = delete;
};

// There is no user to type a password.
int no_password(char*, int, int, void*) {
  return -1;
}

bio memory(const std::string& text) {
  return bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

checked<std::string> public_part(const EVP_PKEY* key) {
  if (key == nullptr || EVP_PKEY_get_id(key) != EVP_PKEY_ED25519)
    return bad_key("holds no ed25519 key");
  std::string raw(key_bytes, '\0');
  std::size_t size = raw.size();
  if (EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(raw.data()), &size) != 1 ||
      size != key_bytes)
    return bad_key("holds an unusable ed25519 key");
  return hexadecimal_text(raw);
}

// "sha256: ..." of exactly this many bytes, taken from the front.
std::optional<std::string> take_line(std::string_view& text, std::string_view name,
                                     std::size_t bytes) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(name)) return std::nullopt;
  const std::string_view value = text.substr(name.size(), end - name.size());
  if (!is_hexadecimal(value, bytes)) return std::nullopt;
  text.remove_prefix(end + 1);
  return std::string(value);
}

checked<std::string> read_text(const trusted_file& file, uint64_t limit, code c) {
  auto text = read_all(file, limit);
  if (!text) return reject(c, text.error().reason);
  return text;
}

defect named(const std::filesystem::path& file, defect d) {
  d.reason = fmt::format("{} {}", printable(file.string(), 400), d.reason);
  return d;
}

checked<file_map> map_of(const trusted_file& file) {
  auto map = file_map::open(file.fd.get(), file.identity.size_bytes);
  if (!map)
    return reject(code::trust_kind,
                  fmt::format("{} cannot be mapped", printable(file.path.string(), 400)));
  return std::move(*map);
}

std::filesystem::path signature_path(const std::filesystem::path& library) {
  return library.string() + ".sig";
}

}  // namespace

checked<signature> parse_signature(const std::string& text) {
  std::string_view rest = text;
  constexpr std::string_view first = "bitnet-signature: 1\n";
  if (!rest.starts_with(first))
    return bad_signature(
        fmt::format("is no signature; it should begin with 'bitnet-signature: 1', and begins '{}'",
                    printable(rest.substr(0, 20), 40)));
  rest.remove_prefix(first.size());
  const auto sha256 = take_line(rest, "sha256: ", 32);
  const auto key = sha256 ? take_line(rest, "key: ", key_bytes) : std::nullopt;
  const auto value = key ? take_line(rest, "signature: ", signature_bytes) : std::nullopt;
  if (!value || !rest.empty())
    return bad_signature("is damaged; expected the lines sha256, key and signature",
                         "sign the file again");
  return signature{*sha256, *key, *value};
}

checked<std::string> read_public_key(const std::string& pem) {
  const own_errors scope;
  const bio in = memory(pem);
  const key_handle key(in ? PEM_read_bio_PUBKEY(in.get(), nullptr, no_password, nullptr) : nullptr);
  return public_part(key.get());
}

checked<std::string> sign(std::span<const std::byte> bytes, const std::string& private_pem) {
  const own_errors scope;
  const bio in = memory(private_pem);
  const key_handle key(in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_password, nullptr)
                          : nullptr);
  if (!key) return bad_key("holds no private key that can be read without a password");
  const auto id = public_part(key.get());
  if (!id) return std::unexpected(id.error());
  const std::string sha256 = sha256_of(bytes);
  const std::string message = statement(sha256);
  std::string value(signature_bytes, '\0');
  std::size_t size = value.size();
  const context c(EVP_MD_CTX_new());
  if (!c || EVP_DigestSignInit(c.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestSign(c.get(), reinterpret_cast<unsigned char*>(value.data()), &size,
                     unsigned_bytes(message), message.size()) != 1 ||
      size != signature_bytes)
    return bad_key("holds a key that cannot sign");
  return message + "key: " + *id + "\nsignature: " + hexadecimal_text(value) + "\n";
}

checked<trusted_key> verify(std::span<const std::byte> bytes, const std::string& signature_text,
                            const std::vector<trusted_key>& keys) {
  const own_errors scope;
  const auto given = parse_signature(signature_text);
  if (!given) return std::unexpected(given.error());
  const auto trusted = std::ranges::find(keys, given->key, &trusted_key::key);
  if (trusted == keys.end())
    return bad_signature(
        fmt::format("was made with the key {}, which is none of the {} trusted ones", given->key,
                    keys.size()),
        "put the signer's public key into the folder of trusted keys");
  const std::string raw = raw_bytes(given->key);
  const std::string value = raw_bytes(given->value);
  const std::string message = statement(given->sha256);
  const key_handle key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, unsigned_bytes(raw), raw.size()));
  const context c(EVP_MD_CTX_new());
  if (!key || !c || EVP_DigestVerifyInit(c.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestVerify(c.get(), unsigned_bytes(value), value.size(), unsigned_bytes(message),
                       message.size()) != 1)
    return bad_signature(fmt::format("does not fit its key {}: it was altered", given->key));
  if (const std::string is = sha256_of(bytes); is != given->sha256)
    return bad_signature(
        fmt::format("is for a file with the SHA-256 {}, this one has {}", given->sha256, is));
  return *trusted;
}

checked<std::vector<trusted_key>> read_trusted_keys(const std::filesystem::path& folder) {
  if (auto fine = trust_directory(folder); !fine) return std::unexpected(std::move(fine.error()));
  std::vector<std::filesystem::path> files;
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error))
    if (at->path().extension() == ".pem") files.push_back(at->path());
  if (error)
    return bad_key(fmt::format("{} cannot be read: {}", printable(folder.string(), 400),
                               limits::reason(error.value())));
  std::ranges::sort(files);
  std::vector<trusted_key> out;
  for (const auto& file : files) {
    const auto opened = open_trusted(file);
    if (!opened) return std::unexpected(opened.error());
    const auto pem = read_text(*opened, max_key_bytes, code::trust_key);
    if (!pem) return std::unexpected(pem.error());
    auto key = read_public_key(*pem);
    if (!key) return std::unexpected(named(file, std::move(key.error())));
    out.push_back({std::move(*key), printable(file.filename().string(), 200)});
  }
  return out;
}

checked<trusted_key> verify_file(const trusted_file& library,
                                 const std::filesystem::path& key_folder) {
  // Without a trusted key no signature helps: signing the file again would be the wrong advice.
  const std::string advice = fmt::format(
      "put the public keys of those who may sign, as *.pem, into {}, or name another "
      "folder in trusted_keys",
      printable(key_folder.string(), 400));
  auto keys = read_trusted_keys(key_folder);
  if (!keys && keys.error().code == code::trust_missing) keys.error().hint = advice;
  if (!keys) return std::unexpected(std::move(keys.error()));
  if (keys->empty())
    return reject(code::trust_signature,
                  fmt::format("there is no trusted key in {}", printable(key_folder.string(), 400)),
                  advice);
  const std::filesystem::path path = signature_path(library.path);
  const auto file = open_trusted(path);
  if (!file && file.error().code == code::trust_missing)
    return bad_signature(fmt::format("{} is not signed: there is no {} beside it",
                                     printable(library.path.string(), 400),
                                     printable(path.filename().string(), 200)));
  if (!file) return std::unexpected(file.error());
  const auto text = read_text(*file, max_signature_bytes, code::trust_signature);
  if (!text) return std::unexpected(text.error());
  const auto map = map_of(library);
  if (!map) return std::unexpected(map.error());
  auto found = verify(map->bytes(), *text, *keys);
  if (!found) return std::unexpected(named(path, std::move(found.error())));
  return found;
}

checked<std::filesystem::path> sign_file(const std::filesystem::path& library,
                                         const std::filesystem::path& key) {
  const auto file = open_trusted(library);
  if (!file) return std::unexpected(file.error());
  const auto key_file = open_trusted(key);
  if (!key_file) return std::unexpected(key_file.error());
  struct stat s{};
  if (::fstat(key_file->fd.get(), &s) != 0 || (s.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return reject(code::trust_key,
                  fmt::format("{} may be read by others", printable(key.string(), 400)),
                  fmt::format("chmod 600 '{}'", printable(key.string(), 400)));
  const auto pem = read_text(*key_file, max_key_bytes, code::trust_key);
  if (!pem) return std::unexpected(pem.error());
  const auto map = map_of(*file);
  if (!map) return std::unexpected(map.error());
  const auto text = sign(map->bytes(), *pem);
  if (!text) return std::unexpected(named(key, text.error()));

  std::filesystem::path path = signature_path(file->path);
  if (auto written = files::write_file(path, *text); !written)
    return bad_signature(
        fmt::format("cannot write {}: {}", printable(path.string(), 400), written.error().text),
        "make the folder writable for you");
  return path;
}

}  // namespace bitnet::plugin
