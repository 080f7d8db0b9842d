#pragma once
// Sizes that suit this machine, found by measuring: bitnet/abi/tuning.h. They hold for the whole
// process. Results never depend on them.
// A measurement is unreliable if its repetitions differ much, or if the memory was far slower than
// its best so far: another program was computing. Then the usual settings stay, except where a
// candidate was far better in nearly every round, and ten minutes later a new measurement is due.
//
// Threads  any; one at a time measures or adopts.

#include <cstdint>
#include <string>
#include <string_view>

#include "bitnet/sdk/host.hpp"
#include "kernels/variants.hpp"

namespace bitnet::cpu {

struct tuning {
  uint32_t ahead =
      usual_ahead;  // bytes between the weight that is prefetched and the one in use (prefetch.inl)
  uint32_t tile_rows = 64;  // rows of weights in the first-level cache while a few tokens pass
  bool fives = false;       // copies of ternary rows have five weights in a byte (linear_fives.hpp)

  bool operator==(const tuning&) const = default;
};
inline constexpr uint32_t most_tile_rows = 128;

tuning current_tuning();
// False, with nothing changed, unless `text` is valid.
bool adopt_tuning(std::string_view text);
// "ahead=3072 tile_rows=64 stream=31.2", "fives=1" if used, "pages=small" if there were no large
// ones, then the measurements that fit: "ahead:4096=30.1~2" is 30.1 GB/s with repetitions 2 %
// apart, "tile_rows:16=201~1" is 201 * 10^9 products a second, "fives:1=1.08~2" is 1.08 times the
// speed without. `stream` is the best rate of the memory so far, in GB/s; unsettled=SECONDS is the
// time since which a reliable measurement is due.
std::string describe_tuning();
// True if the adopted settings should be measured again at time `now`, in seconds since 1970.
bool tuning_is_due(int64_t now);

// Measures on all of the host's workers, for about budget_ns, in memory like a device's. Returns
// why the result is unreliable, or "". Throws std::bad_alloc.
std::string measure_tuning(const isa_form& isa, const sdk::host& host, uint64_t budget_ns,
                           uint64_t cancel_token = 0, bool large_pages = true);

}  // namespace bitnet::cpu
