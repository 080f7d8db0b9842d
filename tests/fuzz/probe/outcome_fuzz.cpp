// Any text as what a child or the cache says: what is accepted is written and read again the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "probe/outcome.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitnet::probe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto f = read_facts(text)) {
    if (f->devices.size() > max_devices) abort();
    const auto again = read_facts(write_facts(*f));
    if (!again || write_facts(*again) != write_facts(*f)) abort();
  }
  if (const auto f = read_outcome(text)) {
    const auto again = read_outcome(write_outcome(*f));
    if (!again || write_outcome(*again) != write_outcome(*f)) abort();
  }
  return 0;
}
