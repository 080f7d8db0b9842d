// A hints file may be damaged: no text may crash the reader, and what it takes is as its users
// expect it.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "doctor/hints.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto hints = bitnet::host::doctor::parse_hints(text, "fuzz.yaml");
  if (!hints) {
    if (hints.error().message.find("fuzz.yaml") != 0) std::abort();
    return 0;
  }
  for (const auto& row : *hints) {
    if (row.vendor.size() != 4 || row.device_class.empty() || row.name.empty()) std::abort();
    for (const auto& backend : row.backends)
      if (backend.name.empty() || backend.package.empty()) std::abort();
  }
  return 0;
}
