// Any bytes as the file of a saved sequence: rejected with a reason, or blocks and state lie inside
// the bytes, and writing what was read gives the same file. Each input is read as it is, and once
// more with its size and a right checksum, which no mutation finds.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kv/saved_sequence.hpp"

namespace {

using namespace bitnet::kv;  // NOLINT(google-build-using-namespace): the parser
using bytes = std::span<const std::byte>;

void demand(bool holds) {
  if (!holds) std::abort();
}

bool lies_in(bytes part, bytes all) {
  return part.data() >= all.data() && part.data() + part.size() <= all.data() + all.size();
}

void read(bytes file) {
  const auto outline = read_saved_outline(
      file.first(std::min<std::size_t>(file.size(), saved_outline_bytes)), file.size());
  const auto got = read_saved(file);
  if (!outline) demand(!got && !outline.error().message.empty());
  if (!got) {
    demand(!got.error().message.empty());
    return;
  }
  demand(lies_in(got->blocks, file) && lies_in(got->state, file));
  demand(got->tokens.size() == outline->n_blocks * got->form.tokens_per_block);
  demand(got->blocks.size() == outline->n_blocks * got->form.block_bytes);
  demand(got->state.size() == got->form.state_bytes);
  static_cast<void>(check_form(got->form, {4, 8, 0, {{"model", "abc", "use it"}}}));
  const saved_frame again = frame_of(*got);
  demand(std::ranges::equal(again.begin, file.first(again.begin.size())));
  demand(std::ranges::equal(again.end, file.last(again.end.size())));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto given = std::as_bytes(std::span(data, size));
  read(given);
  if (size < 64) return 0;
  std::vector<std::byte> file(given.begin(), given.end());
  const uint64_t n = size;
  std::memcpy(file.data() + 16, &n, sizeof n);
  const uint64_t sum = XXH3_64bits(file.data(), size - sizeof sum);
  std::memcpy(file.data() + size - sizeof sum, &sum, sizeof sum);
  read(file);
  return 0;
}
