// Any bytes as a list of CPUs: ascending numbers below the most that there can be, or nothing; and
// what is read is written as the kernel would write it, but for ranges of one or of neighbours.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "threads/topology.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace bitnet::threads;
  const auto read = read_cpu_list({reinterpret_cast<const char*>(data), size});
  if (!read) return 0;
  if (std::ranges::adjacent_find(*read, std::ranges::greater_equal()) != read->end()) abort();
  if (!read->empty() && read->back() >= most_cpus) abort();
  if (read_cpu_list(ranges(*read)) != read) abort();
  return 0;
}
