#include "select/request.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "bitnet/abi/info.h"
#include "plugin/codes/text.hpp"
#include "text/ascii.hpp"
#include "text/items.hpp"

namespace bitnet::select {
namespace {

constexpr std::size_t max_request_bytes = 256;
constexpr std::size_t max_index_digits = 4;

constexpr auto classes = std::to_array<std::pair<std::string_view, uint32_t>>({
    {"cpu", BITNET_DEVICE_CPU},
    {"gpu", BITNET_DEVICE_GPU},
    {"npu", BITNET_DEVICE_NPU},
});

std::expected<wish, std::string> parse_wish(std::string_view item) {
  const std::size_t colon = item.find(':');
  wish out;
  out.text = item;
  out.name = item.substr(0, colon);
  if (!plugin::is_backend_name(out.name))
    return std::unexpected(
        fmt::format("'{}' is no backend name; names match [a-z0-9][a-z0-9._-]{{0,31}}",
                    plugin::printable(out.name, 64)));
  if (colon != std::string_view::npos) {
    const std::string_view digits = item.substr(colon + 1);
    uint32_t index = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (digits.empty() || digits.size() > max_index_digits || error != std::errc() ||
        stop != digits.data() + digits.size())
      return std::unexpected(fmt::format("'{}' is no device index; expected a number like {}:0",
                                         plugin::printable(digits, 64), out.name));
    out.index = index;
  }
  if (out.name == "auto") {
    if (out.index) return std::unexpected("auto takes no device index");
    return out;
  }
  const auto* const known =
      std::ranges::find(classes, out.name, &std::pair<std::string_view, uint32_t>::first);
  if (known != classes.end()) {
    out.kind = wish::kind_type::device_class;
    out.device_class = known->second;
    return out;
  }
  out.kind = wish::kind_type::name;
  return out;
}

}  // namespace

result<std::vector<wish>> parse_request(const std::string& text, const std::string& requested_by) {
  const auto malformed = [&](const std::string& why) {
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("malformed device request '{}' (from {}): {}; write auto, cpu, gpu, "
                            "npu, a backend's name, name:index, or a comma list",
                            plugin::printable(text, 64), plugin::printable(requested_by, 64), why));
  };
  if (text.size() > max_request_bytes)
    return malformed(fmt::format("it has more than {} bytes", max_request_bytes));
  std::string lower = lower_ascii(std::string(bitnet::text::without_blanks_around(text)));
  if (lower.empty()) lower = "auto";

  std::vector<wish> out;
  for (const std::string_view item : bitnet::text::items(lower)) {
    if (item.empty()) return malformed("an item of the list is empty");
    auto one = parse_wish(item);
    if (!one) return malformed(one.error());
    if (std::ranges::none_of(out, [&](const wish& w) { return w.text == one->text; }))
      out.push_back(std::move(*one));
  }
  return out;
}

}  // namespace bitnet::select
