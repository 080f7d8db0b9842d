#pragma once
// Cryptographic random numbers.

#include <cstddef>
#include <string>

namespace bitnet::receipt {

// Returns `bytes` random bytes as hexadecimal digits.
[[nodiscard]] std::string random_digits(std::size_t bytes);

}  // namespace bitnet::receipt
