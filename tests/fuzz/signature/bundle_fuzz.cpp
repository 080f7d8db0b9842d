// Any bytes as the file of a model's signature, and as the statement in one: read or rejected.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "signature/bundle.hpp"
#include "signature/manifest.hpp"

using namespace bitnet::signature;

namespace {

void check(const bitnet::result<manifest>& read) {
  if (!read) {
    if (read.error().status != BITNET_REJECTED || read.error().message.empty()) abort();
    return;
  }
  if (read->files.empty() || read->digest.size() != 64) abort();
  for (const auto& [name, pieces] : read->files) {
    if (name.empty() || name.front() == '/' || pieces.empty()) abort();
    for (uint64_t at = 0; const piece& one : pieces) {
      if (one.begin != at || one.end <= one.begin) abort();
      at = one.end;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(read_manifest(text));
  const auto read = read_bundle(text);
  if (!read) {
    if (read.error().status != BITNET_REJECTED || read.error().message.empty()) abort();
    return 0;
  }
  if (read->payload.empty() || read->signature.empty()) abort();
  if (read->certificates.size() > most_certificates) abort();
  check(read_manifest(read->payload));
  return 0;
}
