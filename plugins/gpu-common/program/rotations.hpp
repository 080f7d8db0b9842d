#pragma once
// Cosines and sines by position, computed once per position and then copied.
//
// Threads  any.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace bitnet::gpu {

class rotations {
 public:
  // Radians for each position.
  explicit rotations(std::vector<double> frequencies) : frequencies_(std::move(frequencies)) {}

  // Computes what `write` will copy for these positions. It skips positions beyond those that are
  // kept, and negative ones, which are invalid: `write` handles both.
  void prepare(std::span<const int32_t> positions);
  // Cosine and sine of each frequency, one position after the other.
  void write(std::span<const int32_t> positions, float* out);

 private:
  // Positions computed together, and the number of such chunks kept. Later positions are computed
  // each time.
  static constexpr uint32_t of_chunk = 64, most_chunks = 1024;
  void compute(uint64_t position, float* out) const noexcept;
  const float* kept(uint64_t position);

  const std::vector<double> frequencies_;
  std::mutex lock_;
  std::vector<std::unique_ptr<float[]>> chunks_;
};

}  // namespace bitnet::gpu
