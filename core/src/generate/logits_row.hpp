#pragma once
// An output row of a step: every logit, or the largest where the device listed them.

#include <cstdint>
#include <span>

namespace bitnet::generate {

struct logits_row {
  std::span<const float> logits;  // (n_vocab); may be anything where `ids` is not empty
  std::span<const int32_t> ids;   // of the largest logits, in any order
  std::span<const float> listed;  // the logits of `ids`
};

}  // namespace bitnet::generate
