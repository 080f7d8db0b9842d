// Which layer a weight is of, by its name.
#include "engine/program_ops.hpp"

#include <gtest/gtest.h>

namespace bitnet::engine {
namespace {

TEST(ProgramOps, AWeightOfALayerHasItsNumber) {
  EXPECT_EQ(layer_of("blk.0.attn_q.weight"), 0U);
  EXPECT_EQ(layer_of("blk.29.ffn_norm.weight"), 29U);
  for (const char* name : {"", "blk.", "blk.x.a", "blk.7", "blk.-1.a", "blk.99999999999.a",
                           "token_embd.weight", "output_norm.weight", "ablk.1.x"})
    EXPECT_FALSE(layer_of(name)) << name;
}

}  // namespace
}  // namespace bitnet::engine
