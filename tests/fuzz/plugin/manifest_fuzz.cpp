// Any bytes as a manifest: an answer or a located complaint, nothing else.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "plugin/manifest/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > bitnet::plugin::max_manifest_bytes) return 0;  // rejected by its size
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto parsed = bitnet::plugin::parse_manifest(text, "manifest.yaml");
  if (parsed) {
    // What passes keeps the promises of the header.
    if (parsed->abi_min > parsed->abi_max || parsed->name.empty() || parsed->name.size() > 32)
      abort();
    (void)bitnet::plugin::locate_library(parsed->library, "/nowhere");
  } else if (!parsed.error().reason.starts_with("manifest.yaml:")) {
    abort();
  }
  return 0;
}
