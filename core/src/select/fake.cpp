#include "select/fake.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/ascii.hpp"
#include "plugin/codes/text.hpp"

namespace bitnet::select {
namespace {

constexpr std::size_t most_bytes = 256;
constexpr uint32_t most_devices = 64;

}  // namespace

result<std::vector<fake_backend>> parse_fakes(std::string_view text) {
  const auto malformed = [&](const std::string& why) {
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("BITNET_GPU_FAKE is '{}': {}; expected none, or a comma list of NAME "
                            "or NAME:COUNT such as one,other:2",
                            plugin::printable(std::string(text), 64), why));
  };
  if (text.size() > most_bytes)
    return malformed(fmt::format("it has more than {} bytes", most_bytes));
  std::string lower;
  for (const char c : text)
    if (c != ' ' && c != '\t') lower += lower_ascii(c);
  std::vector<fake_backend> out;
  if (lower.empty() || lower == "none") return out;
  for (std::size_t begin = 0; begin <= lower.size();) {
    const std::size_t end = std::min(lower.find(',', begin), lower.size());
    const std::string item = lower.substr(begin, end - begin);
    begin = end + 1;
    fake_backend one;
    const std::size_t colon = item.find(':');
    one.name = item.substr(0, colon);
    if (!plugin::is_backend_name(one.name) || one.name == "none" || one.name == "auto")
      return malformed(fmt::format("'{}' is no backend name", plugin::printable(one.name, 64)));
    if (colon != std::string::npos) {
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
