// Any bytes as the answer of a broker: rejected with a reason, or it is the same when it is written
// and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "probe/job.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitnet::probe;
  const auto answer = read_answer({reinterpret_cast<const char*>(data), size});
  if (!answer) {
    if (answer.error().reason.empty()) std::abort();
    return 0;
  }
  const auto same = read_answer(write_answer(*answer));
  if (!same || write_answer(*same) != write_answer(*answer)) std::abort();
  if (same->cached != answer->cached || same->quarantined != answer->quarantined ||
      same->age_s != answer->age_s || same->retry_in_s != answer->retry_in_s)
    std::abort();
  return 0;
}
