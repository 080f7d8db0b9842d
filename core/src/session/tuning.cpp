#include "session/tuning.hpp"

#include <array>
#include <cstring>
#include <string_view>

#include "bitnet/abi/tuning.h"
#include "plugin/foreign_error.hpp"
#include "plugin/text.hpp"

namespace bitnet::session {
namespace {

constexpr uint64_t budget_ns = 60'000'000;

// Another version may have other settings, another machine needs others.
std::string key_of(const select::choice& choice) {
  const bitnet_device_info& d = choice.device;
  return "tuning:" + choice.backend->name() + ":" + choice.backend->version() + ":" +
         plugin::printable_array(d.arch) + ":" + plugin::printable_array(d.name) + ":" +
         plugin::printable_array(d.driver_version) + ":" + std::to_string(d.compute_units);
}

std::string settings_of(const bitnet_tuning_v1& t, bitnet_device* device) {
  std::array<char, BITNET_TUNING_TEXT_BYTES> text{};
  bitnet_error err = plugin::blank_error();
  if (t.describe(device, text.data(), text.size(), &err) != BITNET_OK) return "";
  return plugin::printable(std::string(text.data(), strnlen(text.data(), text.size() - 1)),
                           text.size());
}

}  // namespace

std::string tune(const select::choice& choice, bitnet_device* device, const pack_cache* cache) {
  const bitnet_backend_v0& table = choice.backend->table();
  constexpr std::string_view name = BITNET_INTERFACE_TUNING;
  const auto* offered = table.query_interface(table.self, {name.data(), name.size()}, 1);
  if (offered == nullptr || offered->struct_size < sizeof(bitnet_tuning_v1)) return "";
  const auto& t = *reinterpret_cast<const bitnet_tuning_v1*>(offered);
  if (cache == nullptr) return settings_of(t, device);

  const std::string key = key_of(choice);
  const std::string who = "backend " + choice.backend->name();
  bitnet_error err = plugin::blank_error();
  if (const auto kept = cache->find(key)) {
    const auto* text = reinterpret_cast<const char*>(kept->form.data());
    const bitnet_status status = t.adopt(device, {text, kept->form.size()}, &err);
    if (status == BITNET_OK) return settings_of(t, device);
    cache->note(who + ": settings are measured again: " + plugin::describe(status, err));
  }
  err = plugin::blank_error();
  if (const bitnet_status status = t.measure(device, budget_ns, &err); status != BITNET_OK) {
    cache->note(who + ": measuring its settings failed: " + plugin::describe(status, err));
    return settings_of(t, device);
  }
  const std::string found = settings_of(t, device);
  cache->note(who + ": measured " + found, BITNET_LOG_INFO);
  cache->keep(key, std::as_bytes(std::span(found.data(), found.size())));
  return found;
}

}  // namespace bitnet::session
