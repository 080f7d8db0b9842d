#include "pool_settings.hpp"

#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

namespace bitnet::gpu {
namespace {

constexpr uint64_t ns_of_second = 1'000'000'000;

// Reads a whole number. Units as elsewhere in bitnet: k, m, g of 1000, K, M, G of 1024.
bool read_number(std::string_view text, bool with_unit, uint64_t most, uint64_t& out) {
  constexpr std::pair<char, uint64_t> units[] = {{'k', 1'000},         {'m', 1'000'000},
                                                 {'g', 1'000'000'000}, {'K', 1u << 10},
                                                 {'M', 1u << 20},      {'G', 1u << 30}};
  uint64_t unit = 1;
  for (const auto& [letter, size] : units)
    if (with_unit && text.ends_with(letter)) unit = size;
  if (unit != 1) text.remove_suffix(1);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return false;
  if (number > most / unit) return false;
  out = number * unit;
  return true;
}

}  // namespace

bitnet_status read_pool_settings(const settings& user, memory_pool_config& out,
                                 const sdk::reporter& report) {
  uint64_t buffers = out.max_cached_buffers, seconds = out.cleanup_interval_ns / ns_of_second;
  const struct {
    const char* key;
    uint64_t& value;
    uint64_t least = 0;
    uint64_t most;
    bool with_unit = false;
    const char* expected;
  } all[] = {
      {.key = "max_pool_size",
       .value = out.max_pool_size,
       .least = 1,
       .most = uint64_t{1} << 62,
       .with_unit = true,
       .expected = "bytes such as 536870912, 512M or 2G"},
      {.key = "max_cached_buffers",
       .value = buffers,
       .most = std::numeric_limits<uint32_t>::max(),
       .expected = "a number of buffers such as 1000; 0 keeps none"},
      {.key = "cleanup_interval",
       .value = seconds,
       .most = uint64_t{1} << 32,
       .expected = "whole seconds such as 30"},
  };
  for (const auto& one : all) {
    const auto found = user.find(one.key);
    if (found == user.end()) continue;
    uint64_t value = 0;
    if (!read_number(found->second, one.with_unit, one.most, value) || value < one.least)
      return report.fail(BITNET_UNAVAILABLE, "setting %s is '%.64s'; expected %s", one.key,
                         found->second.c_str(), one.expected);
    one.value = value;
  }
  out.max_cached_buffers = static_cast<uint32_t>(buffers);
  out.cleanup_interval_ns = seconds * ns_of_second;
  return BITNET_OK;
}

}  // namespace bitnet::gpu
