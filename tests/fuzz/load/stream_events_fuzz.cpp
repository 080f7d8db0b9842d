// Any bytes as a stream of events, in two pieces: the same events as in one, and chunks of them.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "load/stream_events.hpp"

namespace load = bitnet::host::load;

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  load::stream_events whole, pieces;
  const auto expected = whole.take(all);
  const auto first = pieces.take(all.substr(0, size / 3));
  if (!expected || !first) return 0;
  const auto second = pieces.take(all.substr(size / 3));
  if (!second || first->size() + second->size() != expected->size()) std::abort();
  for (std::size_t i = 0; i < expected->size(); ++i) {
    const std::string& event = (*expected)[i];
    if (event != (i < first->size() ? (*first)[i] : (*second)[i - first->size()])) std::abort();
    const load::stream_chunk chunk = load::read_chunk(event);
    if (!chunk.error.empty() && (chunk.has_text || chunk.is_end)) std::abort();
  }
  return 0;
}
