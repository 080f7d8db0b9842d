// Any bytes as the file of --plan: a rejection has code 2 and a reason, and what is read is written
// and read again as the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plan/comparing.hpp"
#include "plan/file.hpp"
#include "plan/pins.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace plans = bitnet::host::plans;
  const auto read = plans::read_plan({reinterpret_cast<const char*>(data), size}, "plan.yaml");
  if (!read) {
    if (read.error().exit_code != bitnet::host::exit_code::usage || read.error().message.empty())
      std::abort();
    return 0;
  }
  const std::string written = plans::write_plan(*read);
  const auto again = plans::read_plan(written, "plan.yaml");
  if (!again || plans::write_plan(*again) != written) std::abort();
  if (const auto pins = plans::pins_of(*read); pins && pins->backend.empty()) std::abort();
  (void)plans::differences(*read, *again);
  return 0;
}
