#pragma once
// Random numbers that cannot be guessed.

#include <cstddef>
#include <string>

namespace bitnet::receipt {

// So many random bytes, as hexadecimal digits.
[[nodiscard]] std::string random_digits(std::size_t bytes);

}  // namespace bitnet::receipt
