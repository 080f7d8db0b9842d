// The memory that plugins/gpu-common says a program needs, and what recordings of cuda and rocm
// copy to the device by plugins/gpu-common/streams/launch_recording.hpp.

#include <gtest/gtest.h>

#include "gpu-common/simt_kernels.hpp"
#include "planned.hpp"

namespace bitnet::parity {
namespace {

struct row {
  const char* why;
  tiny_shape shape;
  uint32_t max_tokens, max_sequences, max_blocks;
};
const row rows[] = {
    {"a small step", {}, 16, 3, 8},
    {"rotations are most of it", {.head_dim = 64}, 512, 1, 128},
    {"a table of blocks of 48 KiB", {}, 16, 3, 4096},
    {"a table of blocks of 64 KiB, the largest that is copied", {}, 16, 4, 4096},
    {"a table of blocks of 80 KiB, which is not copied", {}, 16, 5, 4096},
    {"small parts: the beginning of each is aligned", {.layers = 1}, 1, 1, 1},
};

TEST(needed_memory, includes_the_copies_of_two_recordings) {
  for (const row& r : rows) {
    SCOPED_TRACE(r.why);
    const tiny_model m(r.shape);
    runner_options options;
    options.max_tokens = options.max_outputs = r.max_tokens;
    options.max_sequences = r.max_sequences;
    options.max_blocks = r.max_blocks;
    options.n_blocks = 1024;
    bitnet_program_options bounds{};
    bounds.struct_size = sizeof bounds;
    bounds.flags = options.flags;
    bounds.max_tokens = bounds.max_outputs = r.max_tokens;
    bounds.max_sequences = r.max_sequences;
    bounds.max_blocks = r.max_blocks;
    bounds.block_tokens = options.block_tokens;
    const uint64_t without = described(like_cuda(), m, options).needed(m, bounds);
    gpu::facts copying = like_cuda();
    copying.quirks.most_gathered = gpu::most_gathered_bytes;
    copying.quirks.most_gathered_rotations = gpu::most_gathered_rotations;
    described d(copying, m, options);
    const uint64_t of_copies = d.needed(m, bounds) - without;
    d.step(r.max_tokens, r.max_tokens);
    d.step(1);
    uint64_t copied = 0;
    for (const uint64_t bytes : d.seen().gathered) copied += bytes;
    EXPECT_GT(copied, 0u);
    EXPECT_GE(of_copies, copied) << "a device with so much memory would not have enough";
    EXPECT_EQ(of_copies, 2 * d.seen().gathered.front()) << "the larger recording twice";
  }
}

}  // namespace
}  // namespace bitnet::parity
