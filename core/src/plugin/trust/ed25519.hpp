#pragma once
// Keys and signatures of ed25519, by OpenSSL. Keys are PEM files as openssl writes them; private
// keys have no password. Any input is safe: tests/fuzz/plugin/key_fuzz.cpp.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "plugin/codes/codes.hpp"

namespace bitnet::plugin {

constexpr uint64_t max_key_bytes = uint64_t{16} * 1024;
constexpr std::size_t key_bytes = 32;
constexpr std::size_t signature_bytes = 64;

// The public key in a PEM file, as 64 hexadecimal digits in lower case. BN-T-KEY.
[[nodiscard]] checked<std::string> read_public_key(const std::string& pem);

// The public part of a private key, likewise. BN-T-KEY.
[[nodiscard]] checked<std::string> public_key_of(const std::string& private_pem);

struct signed_message {
  std::string key;    // the public key, hexadecimal
  std::string value;  // the signature's signature_bytes bytes
};
// BN-T-KEY unless it is an ed25519 key without a password.
[[nodiscard]] checked<signed_message> sign_message(std::string_view message,
                                                   const std::string& private_pem);

// Whether `key`, hexadecimal, signed the message.
[[nodiscard]] bool is_signed_by(std::string_view message, std::string_view key,
                                std::string_view value);

struct key_pair {
  std::string private_pem, public_pem;
};
// Makes a new key. BN-T-KEY if the system has no randomness.
[[nodiscard]] checked<key_pair> make_key_pair();

// The text of a private key's file, which only its owner may be able to read. BN-T-*.
[[nodiscard]] checked<std::string> read_private_key(const std::filesystem::path& file);

// Whether the text is exactly that many bytes in lower-case hexadecimal digits.
[[nodiscard]] bool is_hexadecimal(std::string_view text, std::size_t bytes);
// Decodes text that is_hexadecimal().
[[nodiscard]] std::string bytes_of_hexadecimal(std::string_view text);
[[nodiscard]] std::string hexadecimal_of(std::string_view bytes);

}  // namespace bitnet::plugin
