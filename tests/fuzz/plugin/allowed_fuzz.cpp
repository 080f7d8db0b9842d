// Any bytes as an allow-list: names that a backend can have, or a printable complaint.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "plugin/trust/policy.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = bitnet::plugin::parse_allowed(text);
  if (!parsed) {
    if (parsed.error().message.empty()) std::abort();
    for (const char c : parsed.error().message)
      if (static_cast<unsigned char>(c) < 0x20) std::abort();
    return 0;
  }
  // Written again, it is the same list.
  std::string again;
  for (const auto& one : *parsed)
    again += (again.empty() ? "" : ",") + one.name + (one.id.empty() ? "" : "@" + one.id);
  const auto same = bitnet::plugin::parse_allowed(again);
  if (!same || same->size() != parsed->size()) std::abort();
  bitnet::plugin::policy rules;
  rules.allowed = *parsed;
  for (std::size_t i = 0; i < parsed->size(); ++i) {
    const auto& one = (*parsed)[i];
    if (one.name != (*same)[i].name || one.id != (*same)[i].id) std::abort();
    if (!bitnet::plugin::check_allowed(rules, one.name)) std::abort();
  }
  if (!parsed->empty() && bitnet::plugin::check_allowed(rules, "No-Backend")) std::abort();
  return 0;
}
