#pragma once
// Keys and signatures of ed25519, by OpenSSL. Keys are PEM files as openssl writes them, private
// ones without a password. Any bytes are safe to give: tests/fuzz/plugin/key_fuzz.cpp does.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "plugin/codes/codes.hpp"

namespace bitnet::plugin {

constexpr uint64_t max_key_bytes = uint64_t{16} * 1024;
constexpr std::size_t key_bytes = 32;
constexpr std::size_t signature_bytes = 64;

// The public key in a PEM file of one, as 64 hexadecimal digits in lower case. BN-T-KEY.
[[nodiscard]] checked<std::string> read_public_key(const std::string& pem);

// The public part of a private key, likewise. BN-T-KEY.
[[nodiscard]] checked<std::string> public_key_of(const std::string& private_pem);

struct signed_message {
  std::string key;    // hexadecimal, of the public key
  std::string value;  // the signature's signature_bytes bytes
};
// BN-T-KEY for anything but an ed25519 key without a password.
[[nodiscard]] checked<signed_message> sign_message(std::string_view message,
                                                   const std::string& private_pem);

// Whether the owner of the key has signed the message. `key` is hexadecimal.
[[nodiscard]] bool is_signed_by(std::string_view message, std::string_view key,
                                std::string_view value);

struct key_pair {
  std::string private_pem, public_pem;
};
// A new one. BN-T-KEY where the system has no randomness.
[[nodiscard]] checked<key_pair> make_key_pair();

// The text of a private key's file, which its owner alone may read. BN-T-*.
[[nodiscard]] checked<std::string> read_private_key(const std::filesystem::path& file);

// Exactly so many bytes as lower-case hexadecimal digits?
[[nodiscard]] bool is_hexadecimal(std::string_view text, std::size_t bytes);
// The bytes of text that is_hexadecimal().
[[nodiscard]] std::string bytes_of_hexadecimal(std::string_view text);
[[nodiscard]] std::string hexadecimal_of(std::string_view bytes);

}  // namespace bitnet::plugin
