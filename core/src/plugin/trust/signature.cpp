#include "plugin/trust/signature.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/wording.hpp"
#include "files/new_file.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/trust/ed25519.hpp"
#include "plugin/trust/file_map.hpp"
#include "plugin/trust/hash.hpp"
#include "system/limits.hpp"

namespace bitnet::plugin {
namespace {

std::string statement(const std::string& sha256) {
  return fmt::format("bitnet-signature: 1\nsha256: {}\n", sha256);
}

std::unexpected<defect> bad_signature(const std::string& why, const std::string& hint = "") {
  return reject(code::trust_signature, why, hint);
}

std::unexpected<defect> bad_key(const std::string& why) {
  return reject(code::trust_key, why);
}

// Removes "sha256: ..." with exactly this many bytes from the front; returns the value.
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
                         say(word::sign_again));
  return signature{*sha256, *key, *value};
}

checked<std::string> sign(std::span<const std::byte> bytes, const std::string& private_pem) {
  const std::string message = statement(sha256_of(bytes));
  const auto made = sign_message(message, private_pem);
  if (!made) return std::unexpected(made.error());
  return message + "key: " + made->key + "\nsignature: " + hexadecimal_of(made->value) + "\n";
}

checked<trusted_key> verify(std::span<const std::byte> bytes, const std::string& signature_text,
                            const std::vector<trusted_key>& keys) {
  const auto given = parse_signature(signature_text);
  if (!given) return std::unexpected(given.error());
  const auto trusted = std::ranges::find(keys, given->key, &trusted_key::key);
  if (trusted == keys.end())
    return bad_signature(
        fmt::format("was made with the key {}, which is none of the {} trusted ones", given->key,
                    keys.size()),
        "put the signer's public key into the folder of trusted keys");
  if (!is_signed_by(statement(given->sha256), given->key, bytes_of_hexadecimal(given->value)))
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
  // Without a trusted key, signing the file again would be the wrong advice.
  const std::string advice = fmt::format(
      "put the public keys of those who may sign, as *.pem, into {}, or name another "
      "folder in {}",
      printable(key_folder.string(), 400), say(word::trusted_keys));
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
  const auto pem = read_private_key(key);
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
