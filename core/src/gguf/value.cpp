#include "gguf/value.hpp"

#include <array>
#include <limits>

#include "gguf/bytes.hpp"

namespace bitnet::gguf {
namespace {

struct kind {
  std::string_view name;
  uint64_t width;
};

constexpr std::array<kind, n_value_types> kinds = {{{"u8", 1},
                                                    {"i8", 1},
                                                    {"u16", 2},
                                                    {"i16", 2},
                                                    {"u32", 4},
                                                    {"i32", 4},
                                                    {"f32", 4},
                                                    {"bool", 1},
                                                    {"string", 0},
                                                    {"array", 0},
                                                    {"u64", 8},
                                                    {"i64", 8},
                                                    {"f64", 8}}};

}  // namespace

std::string_view name_of(value_type type) {
  return kinds[static_cast<uint32_t>(type)].name;
}

uint64_t width_of(value_type type) {
  return kinds[static_cast<uint32_t>(type)].width;
}

std::optional<int64_t> to_integer(const value& v) {
  switch (v.type) {
    case value_type::u8:
      return load<uint8_t>(v.bytes);
    case value_type::i8:
      return load<int8_t>(v.bytes);
    case value_type::u16:
      return load<uint16_t>(v.bytes);
    case value_type::i16:
      return load<int16_t>(v.bytes);
    case value_type::u32:
      return load<uint32_t>(v.bytes);
    case value_type::i32:
      return load<int32_t>(v.bytes);
    case value_type::i64:
      return load<int64_t>(v.bytes);
    case value_type::u64: {
      const auto wide = load<uint64_t>(v.bytes);
      if (wide > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(wide);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> to_real(const value& v) {
  if (v.type == value_type::f32) return load<float>(v.bytes);
  if (v.type == value_type::f64) return load<double>(v.bytes);
  if (const auto whole = to_integer(v)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<bool> to_boolean(const value& v) {
  if (v.type != value_type::boolean) return std::nullopt;
  return v.bytes[0] != std::byte{0};
}

std::optional<std::string_view> to_string(const value& v) {
  if (v.type != value_type::string) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(v.bytes.data()), v.bytes.size());
}

void for_each_element(const value& array, const std::function<bool(const value&)>& visit) {
  std::span<const std::byte> rest = array.bytes;
  for (uint64_t i = 0; i < array.count; ++i) {
    uint64_t width = width_of(array.element);
    if (array.element == value_type::string) {
      width = load<uint64_t>(rest);
      rest = rest.subspan(sizeof(uint64_t));
    }
    if (!visit({.type = array.element, .bytes = rest.first(width)})) return;
    rest = rest.subspan(width);
  }
}

}  // namespace bitnet::gguf
