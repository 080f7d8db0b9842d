// Any bytes as kept settings of the cpu backend: those that it would write itself, or nothing
// changes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ops/tuning.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace cpu = bitnet::cpu;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string before = cpu::describe_tuning();
  if (!cpu::adopt_tuning(text)) {
    if (cpu::describe_tuning() != before) std::abort();
    return 0;
  }
  const cpu::tuning now = cpu::current_tuning();
  if (now.tile_rows == 0 || now.tile_rows > cpu::most_tile_rows) std::abort();
  const std::string described = cpu::describe_tuning();
  if (!cpu::adopt_tuning(described) || cpu::current_tuning() != now) std::abort();
  return 0;
}
