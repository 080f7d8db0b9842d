// Any bytes as a result of `bitnet bench`: rows that can be compared, or a message.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "judge/bench_results.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace judge = bitnet::host::judge;
  const auto rows = judge::read_bench({reinterpret_cast<const char*>(data), size});
  if (!rows) return rows.error().empty() ? std::abort(), 0 : 0;
  for (const judge::compared_row& row : judge::compare_results(*rows, *rows).rows)
    if (!(row.test.p >= 0 && row.test.p <= 1) || !(row.ratio.low <= row.ratio.high)) std::abort();
  return 0;
}
