#pragma once
// Texts of facts about devices.

#include <cstdio>
#include <string>
#include <vector>

namespace bitnet::gpu {

// The 16 bytes of a UUID as "00112233-4455-6677-8899-aabbccddeeff".
inline std::string uuid_text(const void* bytes) {
  std::string out;
  for (size_t i = 0; i < 16; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<const unsigned char*>(bytes)[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += hex;
  }
  return out;
}

// "0000:0a:00.0" of "0000:0A:00.0".
inline std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

// Why none of the devices can be used: "<name> is not used: <refusal>. <name> is ..."; empty if one
// can. `Facts` has `common` and `refusal`.
template <class Facts>
std::string refusals_of(const std::vector<Facts>& all) {
  std::string out;
  for (const Facts& one : all) {
    if (one.refusal.empty()) return "";
    out += (out.empty() ? "" : ". ") + one.common.name + " is not used: " + one.refusal;
  }
  return out;
}

}  // namespace bitnet::gpu
