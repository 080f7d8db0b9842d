#pragma once
// Finds the first op of a model's list that gives different values on two engines, by bisection:
// the list is cut behind an op, and both engines compute up to there.
//
// What it can find: it evaluates with the default options of a session, so f16 keys and no window,
// and with every logit. The tokens are one step; if its end is the same, the last token is a step
// of its own, as in decoding. A composite that either engine has a kernel for is compared at its
// end. Keys and values are compared behind the op that writes them, the states of recurrent layers
// only through later steps. With a tolerance above 0, int8 activations and their scales are not
// compared, as one step of rounding is no error there; the op that reads them is named in place of
// the one that quantised.
//
// Bisection assumes that a difference persists up to the end of the list; one that vanishes before
// is not found. The op before the found one is computed once more, to check that it gives the same.
// If it does not, as on a device that gives other bits in each run, the search goes back from there
// op by op.
//
// Each cut compiles a program, so about ten programs are compiled on each engine.
//
// Threads  any, beside steps and sessions of both engines; takes device_mutex() of one after the
//          other for each run.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "engine/engine.hpp"

namespace bitnet::shadow {

struct op_difference {
  std::string op;                 // "attn_paged"
  std::size_t index = 0, of = 0;  // its index in the model's list, and the length of the list
  std::string layer_or_name;      // its only weight, or "layer 3"; "" if it has neither
  double max_abs = 0;             // largest difference of two elements; infinite: one is not finite
};

inline constexpr std::size_t most_tokens_to_bisect = 512;

// nullopt: no difference above `tolerance` was found (0: not in any byte). BITNET_INVALID_ARGUMENT:
// 0 or too many tokens, an engine of several parts, or engines with different lists.
result<std::optional<op_difference>> first_op_that_differs(
    const std::shared_ptr<engine::engine>& live, const std::shared_ptr<engine::engine>& shadow,
    std::span<const int32_t> tokens, double tolerance);

}  // namespace bitnet::shadow
