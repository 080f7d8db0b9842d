// Any bytes as the job that a program gives a broker: rejected with a reason, or it is the same
// when it is written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "probe/job.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitnet::probe;
  const auto job = read_job({reinterpret_cast<const char*>(data), size});
  if (!job) {
    if (job.error().reason.empty()) std::abort();
    return 0;
  }
  const auto same = read_job(write_job(*job));
  if (!same || write_job(*same) != write_job(*job)) std::abort();
  if (same->environment.size() != job->environment.size() || same->fresh != job->fresh ||
      same->needed != job->needed)
    std::abort();
  for (std::size_t i = 0; i < n_stages; ++i)
    if (same->limits.at(i).hard_ms != job->limits.at(i).hard_ms) std::abort();
  return 0;
}
