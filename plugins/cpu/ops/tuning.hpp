#pragma once
// Sizes that suit this machine, found by measuring: bitnet/abi/tuning.h. They belong to the
// process, as the machine does. Results never depend on them.
//
// Threads  any.

#include <cstdint>
#include <string>
#include <string_view>

#include "bitnet/sdk/host.hpp"
#include "kernels/variants.hpp"

namespace bitnet::cpu {

struct tuning {
  uint32_t ahead = 8192;    // bytes between a weight that is asked for and the one that is used
  uint32_t tile_rows = 64;  // rows of weights that stay in the first caches while tokens pass by

  bool operator==(const tuning&) const = default;
};
inline constexpr uint32_t most_tile_rows = 128;

tuning current_tuning();
// False, with nothing changed, unless it is the text of a tuning.
bool adopt_tuning(std::string_view text);
std::string describe_tuning();  // "ahead=8192 tile_rows=64"
// On all of the host's workers, for about budget_ns. Throws std::bad_alloc.
void measure_tuning(const isa_form& isa, const sdk::host& host, uint64_t budget_ns);

}  // namespace bitnet::cpu
