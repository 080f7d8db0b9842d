// Any bytes as --device: items or a printable complaint.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "select/request.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed =
      bitnet::select::parse_request({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (parsed && parsed->empty()) abort();
  if (!parsed)
    for (const char c : parsed.error().message)
      if (static_cast<unsigned char>(c) < 0x20) abort();
  return 0;
}
