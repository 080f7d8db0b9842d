#include "select/fake.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "plugin/codes/text.hpp"
#include "text/ascii.hpp"
#include "text/items.hpp"

namespace bitnet::select {
namespace {

constexpr std::size_t most_bytes = 256;
constexpr uint32_t most_devices = 64;

}  // namespace

result<std::vector<fake_backend>> parse_fakes(std::string_view given) {
  const auto malformed = [&](const std::string& why) {
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("BITNET_GPU_FAKE is '{}': {}; expected none, or a comma list of NAME "
                            "or NAME:COUNT such as one,other:2",
                            plugin::printable(given, 64), why));
  };
  if (given.size() > most_bytes)
    return malformed(fmt::format("it has more than {} bytes", most_bytes));
  const std::string lower = lower_ascii(std::string(text::without_blanks_around(given)));
  std::vector<fake_backend> out;
  if (lower.empty() || lower == "none") return out;
  for (const std::string_view item : text::items(lower)) {
    fake_backend one;
    const std::size_t colon = item.find(':');
    one.name = item.substr(0, colon);
    if (!plugin::is_backend_name(one.name) || one.name == "none" || one.name == "auto")
      return malformed(fmt::format("'{}' is no backend name", plugin::printable(one.name, 64)));
    if (colon != std::string_view::npos) {
      const char *first = item.data() + colon + 1, *last = item.data() + item.size();
      const auto [stop, error] = std::from_chars(first, last, one.n_devices);
      if (error != std::errc() || stop != last || one.n_devices < 1 || one.n_devices > most_devices)
        return malformed(fmt::format("'{}' is no number of devices from 1 to {}",
                                     plugin::printable(item.substr(colon + 1), 64), most_devices));
    }
    if (std::ranges::find(out, one.name, &fake_backend::name) != out.end())
      return malformed(fmt::format("'{}' is there twice", one.name));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace bitnet::select
