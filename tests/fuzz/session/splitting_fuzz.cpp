// Any text as --n-gpu-layers and as --tensor-split: taken as what it says, or rejected in a line.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "session/splitting.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto layers = bitnet::host::read_gpu_layers(text);
  if (layers ? layers->how != BITNET_GPU_LAYERS_COUNT && layers->n != 0
             : layers.error().message.size() > 300)
    std::abort();
  const auto shares = bitnet::host::read_shares(text);
  if (!shares) return shares.error().message.size() > 300 ? (std::abort(), 0) : 0;
  const auto is_share = [](float x) { return std::isfinite(x) && x >= 0; };
  if (!std::ranges::all_of(*shares, is_share) || shares->size() > 64) std::abort();
  if (!shares->empty() && std::ranges::all_of(*shares, [](float x) { return x == 0; }))
    std::abort();
  return 0;
}
