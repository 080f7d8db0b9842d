#pragma once
// A metadata value: a checked view of its bytes in the file, and conversions.
//
// Owner  the file's bytes; a value is a view of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace bitnet::gguf {

enum class value_type : uint8_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};
inline constexpr uint32_t n_value_types = 13;

std::string_view name_of(value_type type);
// Bytes of a number or bool; 0 for strings and arrays.
uint64_t width_of(value_type type);

struct value {
  value_type type = value_type::u8;
  value_type element = value_type::u8;  // of an array; never an array itself
  uint64_t count = 0;                   // of an array
  std::span<const std::byte> bytes{};   // number: itself; string: its text; array: its elements
};

// nullopt: the value has another kind, or does not fit.
std::optional<int64_t> to_integer(const value& v);  // any integer width
std::optional<double> to_real(const value& v);      // any float or integer width
std::optional<bool> to_boolean(const value& v);
std::optional<std::string_view> to_string(const value& v);

// Calls `visit` for the elements of an array in order until it returns false.
void for_each_element(const value& array, const std::function<bool(const value&)>& visit);

}  // namespace bitnet::gguf
