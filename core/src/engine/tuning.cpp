#include "engine/tuning.hpp"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>
#include <string_view>

#include "bitnet/abi/answers.h"
#include "plugin/codes/text.hpp"
#include "plugin/loading/foreign_error.hpp"

namespace bitnet::engine {
namespace {

constexpr uint64_t budget_ns = 60'000'000;
constexpr uint64_t asked_budget_ns = 10 * budget_ns;  // the user waits for a table

// The key of the settings: another version may have other settings; another machine, or a backend
// with other parameters, needs other values.
std::string key_of(const select::choice& choice) {
  const bitnet_device_info& d = choice.device;
  std::string key =
      fmt::format("tuning:{}:{}:{}:{}:{}:{}", choice.backend->name(), choice.backend->version(),
                  plugin::printable_array(d.arch), plugin::printable_array(d.name),
                  plugin::printable_array(d.driver_version), d.compute_units);
  const std::map<std::string, std::string> given(choice.backend->given().rbegin(),
                                                 choice.backend->given().rend());
  for (const auto& [name, value] : given) key += fmt::format(":{}={}", name, value);
  return key;
}

std::string settings_of(const bitnet_tuning_v1& t, bitnet_device* device) {
  std::array<char, BITNET_TUNING_TEXT_BYTES> text{};
  bitnet_error err = plugin::blank_error();
  if (t.describe(device, text.data(), text.size(), &err) != BITNET_OK) return "";
  return plugin::printable(std::string(text.data(), strnlen(text.data(), text.size() - 1)),
                           text.size());
}

}  // namespace

std::string tune(const select::choice& choice, bitnet_device* device, const pack_cache* cache,
                 bool now) {
  const bitnet_backend_v0& table = choice.backend->table();
  constexpr std::string_view name = BITNET_INTERFACE_TUNING;
  const auto* offered = table.query_interface(table.self, {name.data(), name.size()}, 1);
  if (offered == nullptr) return "";
  const auto& t = *reinterpret_cast<const bitnet_tuning_v1*>(offered);
  if (bitnet_wrong_tuning_interface(&t) != nullptr) return "";  // tuning is optional
  if (cache == nullptr && !now) return settings_of(t, device);

  const std::string key = key_of(choice);
  const std::string who = fmt::format("backend {}", choice.backend->name());
  const auto note = [&](const std::string& text, uint32_t level = BITNET_LOG_WARN) {
    if (cache != nullptr) cache->note(fmt::format("{}: {}", who, text), level);
  };
  bitnet_error err = plugin::blank_error();
  if (const auto kept = cache != nullptr ? cache->find(key) : std::nullopt) {
    const auto* text = reinterpret_cast<const char*>(kept->form.data());
    const bitnet_status status = t.adopt(device, {text, kept->form.size()}, &err);
    if (status == BITNET_OK && !now) return settings_of(t, device);
    if (status != BITNET_OK)
      note(fmt::format("settings are measured again: {}", plugin::describe(status, err)),
           status == BITNET_UNAVAILABLE ? BITNET_LOG_INFO : BITNET_LOG_WARN);
  }
  err = plugin::blank_error();
  const bitnet_status status = t.measure(device, now ? asked_budget_ns : budget_ns, 0, &err);
  const std::string found = settings_of(t, device);
  // An unreliable result is kept too: it has the time of the next measurement, and what is known so
  // far.
  if (status == BITNET_UNAVAILABLE)
    note(fmt::format("its settings stay as they are: {}", plugin::describe(status, err)),
         BITNET_LOG_INFO);
  else if (status != BITNET_OK)
    note(fmt::format("measuring its settings failed: {}", plugin::describe(status, err)));
  if (status != BITNET_OK && status != BITNET_UNAVAILABLE) return found;
  note(fmt::format("measured {}", found), BITNET_LOG_INFO);
  if (cache != nullptr) cache->keep(key, std::as_bytes(std::span(found.data(), found.size())));
  return found;
}

tuning_text read_tuning(const std::string& text) {
  tuning_text out;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto colon = word.find(':'), equals = word.find('='), wave = word.find('~');
    tuning_figure f;
    const auto number = [&](std::size_t from, std::size_t to, double& x) {
      const char* end = word.data() + to;
      const auto read = std::from_chars(word.data() + from, end, x);
      return read.ec == std::errc() && read.ptr == end && std::isfinite(x);
    };
    if (colon < equals && equals < wave && wave != std::string::npos &&
        number(equals + 1, wave, f.figure) && number(wave + 1, word.size(), f.spread_percent)) {
      f.setting = word.substr(0, colon);
      f.value = word.substr(colon + 1, equals - colon - 1);
      out.figures.push_back(std::move(f));
    } else {
      out.settings += (out.settings.empty() ? "" : " ") + word;
    }
  }
  return out;
}

}  // namespace bitnet::engine
