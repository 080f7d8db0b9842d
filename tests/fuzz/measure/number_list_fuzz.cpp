// Any text as a list of numbers: all of them are within the bounds, and never too many.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "measure/number_list.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace measure = bitnet::host::measure;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const uint32_t highest : {uint32_t{1} << 20, UINT32_MAX}) {
    const auto numbers = measure::number_list(text, 1, highest);
    if (!numbers) {
      if (numbers.error().empty()) std::abort();
      continue;
    }
    if (numbers->empty() || numbers->size() > measure::most_numbers) std::abort();
    for (const uint32_t n : *numbers)
      if (n < 1 || n > highest) std::abort();
  }
  return 0;
}
