#pragma once
// Sizes that suit this machine, found by measuring: bitnet/abi/tuning.h. They belong to the
// process, as the machine does. Results never depend on them.
//A measurement is unreliable where its repetitions differ much, or where the memory gave far less
// than it did at its best so far: another program was computing. Then the usual settings stay, but
// for those that were far better in nearly every round, and ten minutes later it is time to measure
// again.
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
      usual_ahead;  // bytes between a weight that is asked for and the one that is used (ahead.inl)
  uint32_t tile_rows = 64;  // rows of weights that stay in the first caches while a few tokens pass
  bool fives = false;       // copies of ternary rows have five weights in a byte (linear_fives.hpp)

  bool operator==(const tuning&) const = default;
};
inline constexpr uint32_t most_tile_rows = 128;

tuning current_tuning();
// False, with nothing changed, unless it is the text of a tuning.
bool adopt_tuning(std::string_view text);
// "ahead=3072 tile_rows=64 stream=31.2", "fives=1" where they are used, "pages=small" where they
// were none that are large, then what was measured, as far as there is room: "ahead:4096=30.1~2" is
// 30.1 GB/s with repetitions 2 % apart, "tile_rows:16=201~1" are 10^9 products a second,
// "fives:1=1.08~2" is 1.08 times the speed without. `stream` is the best that the memory gave so
// far, in GB/s; unsettled=SECONDS says since when a reliable measurement is due.
std::string describe_tuning();
// Whether what was adopted should be measured again, at a time in seconds since 1970.
bool tuning_is_due(int64_t now);

// On all of the host's workers, for about budget_ns, from memory that lies as what a device holds
// does. Says why the result is unreliable, else "". Throws std::bad_alloc.
std::string measure_tuning(const isa_form& isa, const sdk::host& host, uint64_t budget_ns,
                           uint64_t cancel_token = 0, bool large_pages = true);

}  // namespace bitnet::cpu
