// Any bytes as a shared object of any machine: a report or a complaint, in time that the file's
// size bounds, without reading beside them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "plugin/analysis/analysis.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that the sanitizer sees a read beyond it.
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  if (size != 0) std::memcpy(copy.get(), data, size);
  constexpr uint64_t most_names = 8;
  const auto found = bitnet::plugin::analyze({copy.get(), size}, most_names);
  if (!found) {
    if (found.error().reason.empty()) abort();
    return 0;
  }
  uint64_t grouped = 0;
  for (const auto& group : found->groups) {
    if (group.defined > group.count || group.names.size() > most_names) abort();
    if (group.names.size() < most_names && group.names.size() != group.count) abort();
    grouped += group.count;
  }
  if (grouped > found->symbols || found->inference.empty()) abort();
  if (!found->for_this_machine && found->problems.empty()) abort();
  return 0;
}
