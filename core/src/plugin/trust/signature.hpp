#pragma once
// Detached ed25519 signatures: <library>.sig has the signature of a key over a library's hash.
// Plain text of four lines, so that people can read it:
//
//   bitnet-signature: 1
//   sha256: <64 hexadecimal digits, of the library>
//   key: <64, the public key>
//   signature: <128, over the first two lines with their line feeds>
//
// Keys are PEM files as openssl writes them. The parsers accept any input safely:
// tests/fuzz/plugin/signature_fuzz.cpp and key_fuzz.cpp.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "plugin/codes/codes.hpp"
#include "plugin/trust/ed25519.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {

constexpr uint64_t max_signature_bytes = 1024;

struct signature {
  std::string sha256, key, value;  // hexadecimal, lower case
};

// BN-T-SIGNATURE.
[[nodiscard]] checked<signature> parse_signature(const std::string& text);

// The text of a .sig file for these bytes. BN-T-KEY unless the key is an ed25519 key without a
// password.
[[nodiscard]] checked<std::string> sign(std::span<const std::byte> bytes,
                                        const std::string& private_pem);

struct trusted_key {
  std::string key;   // hexadecimal
  std::string name;  // its file's name
};

// Returns the key that signed these bytes. BN-T-SIGNATURE.
[[nodiscard]] checked<trusted_key> verify(std::span<const std::byte> bytes,
                                          const std::string& signature_text,
                                          const std::vector<trusted_key>& keys);

// Reads all *.pem of a folder, which must be trusted like a manifest's. BN-T-*.
[[nodiscard]] checked<std::vector<trusted_key>> read_trusted_keys(
    const std::filesystem::path& folder);

// The same with the .sig file beside the library.
[[nodiscard]] checked<trusted_key> verify_file(const trusted_file& library,
                                               const std::filesystem::path& key_folder);

// Writes the .sig file beside the library and returns its name. Only the owner may be able to read
// the private key. BN-T-*.
[[nodiscard]] checked<std::filesystem::path> sign_file(const std::filesystem::path& library,
                                                       const std::filesystem::path& key);

}  // namespace bitnet::plugin
