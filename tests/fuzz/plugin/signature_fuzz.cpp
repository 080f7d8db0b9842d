// Any bytes as a .sig file: a signature or a complaint, and never one that a made-up text passes.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "plugin/trust/signature.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > bitnet::plugin::max_signature_bytes) return 0;  // rejected by its size
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto parsed = bitnet::plugin::parse_signature(text);
  if (!parsed) {
    if (parsed.error().reason.empty()) abort();
    return 0;
  }
  if (parsed->sha256.size() != 64 || parsed->key.size() != 64 || parsed->value.size() != 128)
    abort();
  // The key that it names may be any 32 bytes; no key of them signed the empty file.
  (void)bitnet::plugin::verify({}, text, {{parsed->key, "fuzz.pem"}});
  return 0;
}
