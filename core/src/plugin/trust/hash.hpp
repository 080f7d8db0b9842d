#pragma once
// SHA-256 of what a file holds, as text.

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

// Are these the bytes that the manifest means? BN-T-HASH.
void examine_hash(std::span<const std::byte> bytes, const std::string& expected, findings& found);

}  // namespace bitnet::plugin
