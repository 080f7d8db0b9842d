// Any bytes as a file of the probe cache: an entry with possible numbers, or a complaint. Bytes
// that begin with '{' are given the right first line, as no fuzzer guesses a checksum.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "probe/cache.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitnet::probe;
  std::string text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{')) {
    char line[64];
    std::snprintf(line, sizeof line, "bitnet probe cache 1 %016llx\n",
                  static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
    text = line + text;
  }
  const auto entry = read_entry(text);
  if (!entry && entry.error().reason.empty()) abort();
  if (entry && (entry->keep_s < 0 || entry->keep_s > longest_keep_s || entry->written_s < 0))
    abort();
  return 0;
}
