#pragma once
// SHA-256 of a file's bytes, as text.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "plugin/codes/finding.hpp"

namespace bitnet::plugin {

// 64 hexadecimal digits, lower case.
[[nodiscard]] std::string sha256_of(std::span<const std::byte> bytes);

[[nodiscard]] bool is_sha256(std::string_view text);

[[nodiscard]] std::string hexadecimal(std::span<const std::byte> bytes);

// Checks that the bytes have the manifest's hash. BN-T-HASH.
void examine_hash(std::span<const std::byte> bytes, const std::string& expected, findings& found);

}  // namespace bitnet::plugin
