// Any bytes as a key file: an ed25519 key or a complaint.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "plugin/trust/signature.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > bitnet::plugin::max_key_bytes) return 0;  // rejected by its size
  const std::string pem(reinterpret_cast<const char*>(data), size);
  if (const auto key = bitnet::plugin::read_public_key(pem); key && key->size() != 64) abort();
  const auto made = bitnet::plugin::sign({}, pem);
  if (made && !bitnet::plugin::parse_signature(*made)) abort();
  return 0;
}
