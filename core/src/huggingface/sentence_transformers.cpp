#include "huggingface/sentence_transformers.hpp"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "gguf/text.hpp"
#include "huggingface/json_files.hpp"
#include "huggingface/json_members.hpp"

namespace bitnet::huggingface {
namespace {

namespace fs = std::filesystem;
using gguf::quote;
using nlohmann::json;

constexpr const char* pooling_config = "1_Pooling/config.json";
constexpr uint32_t by_mean = 1, by_first = 2, by_last = 3;

constexpr std::array named_modes = {std::pair{"mean", by_mean}, std::pair{"cls", by_first},
                                    std::pair{"lasttoken", by_last}};
constexpr std::array mode_flags = {std::pair{"pooling_mode_mean_tokens", by_mean},
                                   std::pair{"pooling_mode_cls_token", by_first},
                                   std::pair{"pooling_mode_lasttoken", by_last},
                                   std::pair{"pooling_mode_max_tokens", 0U},
                                   std::pair{"pooling_mode_mean_sqrt_len_tokens", 0U},
                                   std::pair{"pooling_mode_weightedmean_tokens", 0U}};

std::unexpected<failure> unknown_mode(const std::string& what) {
  return fail(BITNET_UNSUPPORTED,
              fmt::format("{}: {}; this program takes the mean, the first or the last token",
                          pooling_config, what));
}

result<std::optional<uint32_t>> mode_of(const json& c) {
  if (const std::string mode = text_at(c, "pooling_mode"); !mode.empty()) {
    for (const auto& [name, number] : named_modes)
      if (mode == name) return number;
    return unknown_mode(fmt::format("pooling_mode is {}", quote(mode)));
  }
  std::optional<uint32_t> found;
  for (const auto& [name, number] : mode_flags) {
    if (!true_at(c, name)) continue;
    if (found) return unknown_mode("several kinds of pooling are put beside one another");
    if (number == 0) return unknown_mode(fmt::format("{} is true", name));
    found = number;
  }
  return found;
}

}  // namespace

result<std::optional<uint32_t>> pooling_of(const fs::path& folder, members_left_out& out) {
  constexpr const char* list = "modules.json";
  std::error_code ignored;
  if (!fs::exists(folder / list, ignored)) return std::nullopt;
  const auto modules = read_json(folder, list, json::value_t::array);
  if (!modules) return std::unexpected(modules.error());
  bool pools = false, has_length = false;
  for (const json& one : *modules) {
    const std::string type = text_at(one, "type");
    const std::string kind = type.substr(type.find_last_of('.') + 1);
    if (kind == "Normalize") has_length = true;
    if (kind == "Pooling" && text_at(one, "path") != "1_Pooling")
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("{}: pooling is described in {}; expected '1_Pooling'", list,
                              quote(text_at(one, "path"))));
    pools = pools || kind == "Pooling";
    if (kind != "Transformer" && kind != "Pooling" && kind != "Normalize")
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("{}: has a module of type {}; this program computes 'Transformer', "
                              "'Pooling' and 'Normalize'",
                              list, quote(type)));
  }
  if (!has_length)
    out.push_back({list, "", "asks for embeddings as they are; this program makes their length 1"});
  if (!pools) return std::nullopt;
  const auto c = read_json(folder, pooling_config);
  if (!c) return std::unexpected(c.error());
  if (auto ok = check_members(*c, pooling_config, "", out); !ok) return std::unexpected(ok.error());
  return mode_of(*c);
}

}  // namespace bitnet::huggingface
