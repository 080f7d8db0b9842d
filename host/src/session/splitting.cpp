#include "session/splitting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "basic/json.hpp"
#include "settings/value.hpp"
#include "text/items.hpp"

namespace bitnet::host {
namespace {

using nlohmann::json;

constexpr int64_t most_layers = 1'000'000;
constexpr std::size_t longest_shown = 60, most_devices = 64;

// Quotes a text, cut to the length that a message shows.
std::string quoted(std::string_view text) {
  return fmt::format("'{}{}'", text.substr(0, longest_shown),
                     text.size() > longest_shown ? "..." : "");
}

uint64_t number_at(const json& from, const char* key) {
  const auto found = from.find(key);
  return found != from.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

std::string layers_of(const json& part) {
  const auto layers = part.find("layers");
  const json none = json::object();
  const json& range = layers != part.end() && layers->is_object() ? *layers : none;
  const uint64_t first = number_at(range, "first"), n = number_at(range, "count");
  std::vector<std::string> pieces;
  if (any_member(part, "embedding") == "true") pieces.emplace_back("embedding");
  if (n == 1) pieces.push_back(fmt::to_string(first));
  if (n > 1) pieces.push_back(fmt::format("{}-{}", first, first + n - 1));
  if (any_member(part, "head") == "true") pieces.emplace_back("head");
  std::string out;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    out += (i == 0 ? "" : i + 1 == pieces.size() ? " and " : ", ") + pieces[i];
  return out;
}

}  // namespace

result<layer_count> read_gpu_layers(std::string_view text) {
  layer_count out;
  if (text == "auto") return out;
  out.how = BITNET_GPU_LAYERS_ALL;
  if (text == "all") return out;
  const auto n = parse_integer(text);
  if (!n || *n < 0 || *n > most_layers)
    return fail(exit_code::usage,
                fmt::format("--n-gpu-layers expects auto, all or a number of layers from 0 to {}, "
                            "found {}",
                            most_layers, quoted(text)));
  out.how = BITNET_GPU_LAYERS_COUNT;
  out.n = static_cast<uint32_t>(*n);
  return out;
}

result<std::vector<float>> read_shares(std::string_view text) {
  std::vector<float> out;
  if (text.empty()) return out;
  constexpr std::string_view wanted = "--tensor-split expects a share for each device, as in 3,1";
  for (const std::string_view item : bitnet::text::items(text)) {
    const auto share = parse_real(item);
    if (!share || !std::isfinite(*share) || *share < 0 ||
        *share > double{std::numeric_limits<float>::max()})
      return fail(exit_code::usage, fmt::format("{}: numbers from 0 on; found {} in {}", wanted,
                                                quoted(item), quoted(text)));
    out.push_back(static_cast<float>(*share));
  }
  if (out.size() > most_devices)
    return fail(exit_code::usage,
                fmt::format("{}: at most {} of them, found {}", wanted, most_devices, out.size()));
  if (std::ranges::all_of(out, [](float x) { return x == 0; }))
    return fail(exit_code::usage,
                fmt::format("{}: not all of them 0; found {}", wanted, quoted(text)));
  return out;
}

std::string layers_text(const json& report, const std::string& selected, bool sizes) {
  const json parts = list_of(report, "parts");
  if (parts.empty() || (parts.size() == 1 && member(parts[0], "device") == selected)) return "";
  constexpr uint64_t megabyte = 1'000'000;
  std::string out;
  for (const json& part : parts) {
    out +=
        fmt::format("{}{} on {}", out.empty() ? "" : ", ", layers_of(part), member(part, "device"));
    if (!sizes) continue;
    out += fmt::format(" ({} MB", number_at(part, "weight_bytes") / megabyte);
    if (const uint64_t mapped = number_at(part, "mapped_bytes"); mapped != 0)
      out += fmt::format(", {} MB of them in the file's pages", mapped / megabyte);
    out += ")";
  }
  return out;
}

}  // namespace bitnet::host
