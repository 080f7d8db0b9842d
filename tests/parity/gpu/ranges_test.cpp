// How ranges are reported to a profiler: their names, and that each ends in the order of nesting.

#include "gpu-common/ranges.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace bitnet::gpu {
namespace {

struct listener final : watcher {
  void begin(const char* what) noexcept override { noted.emplace_back(what); }
  void end() noexcept override { noted.emplace_back("end"); }
  std::vector<std::string> noted;
};

TEST(ranges, have_names_of_texts_and_numbers) {
  listener l;
  {
    const range outer(&l, "step ", 3u, " tokens, ", uint64_t{1}, " outputs");
    const std::string tensor = "blk.0.attn_q";
    const range inner(&l, "upload ", tensor, ", ", std::numeric_limits<uint64_t>::max());
  }
  EXPECT_EQ(l.noted,
            (std::vector<std::string>{"step 3 tokens, 1 outputs",
                                      "upload blk.0.attn_q, 18446744073709551615", "end", "end"}));
}

TEST(ranges, are_nothing_without_a_profiler) {
  const range unheard(nullptr, "step ", 3u);
}

TEST(ranges, are_cut_off) {
  listener l;
  {
    const range name(&l, std::string(126, 'a'), "bc", 12u);
  }
  EXPECT_EQ(l.noted, (std::vector<std::string>{std::string(126, 'a') + "b", "end"}));
}

}  // namespace
}  // namespace bitnet::gpu
