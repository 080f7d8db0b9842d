#include "rotations.hpp"

#include <cmath>
#include <cstring>

namespace bitnet::gpu {

void rotations::compute(uint64_t position, float* out) const noexcept {
  for (const double frequency : frequencies_) {
    const double angle = static_cast<double>(position) * frequency;
    *out++ = static_cast<float>(std::cos(angle));
    *out++ = static_cast<float>(std::sin(angle));
  }
}

// The caller holds the lock.
const float* rotations::kept(uint64_t position) {
  const uint64_t chunk = position / of_chunk, floats = 2 * frequencies_.size();
  if (chunk >= most_chunks) return nullptr;
  if (chunks_.size() <= chunk) chunks_.resize(chunk + 1);
  std::unique_ptr<float[]>& found = chunks_[chunk];
  if (!found) {
    auto made = std::make_unique<float[]>(of_chunk * floats);
    for (uint64_t i = 0; i < of_chunk; ++i) compute(chunk * of_chunk + i, made.get() + i * floats);
    found = std::move(made);
  }
  return found.get() + position % of_chunk * floats;
}

void rotations::prepare(std::span<const int32_t> positions) {
  const std::scoped_lock held(lock_);
  for (const int32_t position : positions) kept(static_cast<uint64_t>(position));
}

void rotations::write(std::span<const int32_t> positions, float* out) {
  const std::scoped_lock held(lock_);
  const uint64_t floats = 2 * frequencies_.size();
  for (const int32_t position : positions) {
    const auto at = static_cast<uint64_t>(position);
    if (const float* found = kept(at))
      std::memcpy(out, found, 4 * floats);
    else
      compute(at, out);
    out += floats;
  }
}

}  // namespace bitnet::gpu
