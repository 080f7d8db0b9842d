// Any bytes as BITNET_GPU_FAKE: backends or a printable complaint.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "select/fake.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = bitnet::select::parse_fakes({reinterpret_cast<const char*>(data), size});
  if (parsed) {
    for (const auto& one : *parsed)
      if (one.name.empty() || one.n_devices == 0) std::abort();
    return 0;
  }
  for (const char c : parsed.error().message)
    if (static_cast<unsigned char>(c) < 0x20) std::abort();
  return 0;
}
