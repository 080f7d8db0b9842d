// Any bytes from a probe's child, fed in pieces of any size: frames or a complaint.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "probe/frame.hpp"
#include "probe/outcome.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = std::max<size_t>(data[0], 1);
  bitnet::probe::frame_reader reader;
  for (size_t at = 1; at < size; at += piece) {
    reader.feed(std::as_bytes(std::span(data + at, std::min(piece, size - at))));
    for (;;) {
      const auto one = reader.next();
      if (!one && one.error().reason.empty()) abort();
      if (!one) return 0;
      if (!*one) break;
      if ((*one)->payload.size() > size) abort();
      if ((*one)->kind == bitnet::probe::frame_kind::facts)
        (void)bitnet::probe::read_facts((*one)->payload);
    }
  }
  return 0;
}
