#pragma once
// The first op of a model's list that gives something else on one engine than on another one, by
// bisection: the list is cut behind an op, and both engines compute up to there.
//
// What it can find. It evaluates with the options of a session that asks for nothing, so f16 keys
// and no window, and with every logit. The tokens are one step; if that ends the same, the last
// token is a step of its own, as a decoded one is. A composite that either engine has a kernel for
// is compared at its end. Keys and values are compared behind the op that keeps them, the states of
// recurrent layers only through what later steps make of them. With a tolerance above 0, int8
// activations and their scales are not compared: one step of rounding is no error there. The op
// that reads them is named in place of the one that quantised.
//
// Bisection assumes that what differs stays different up to the end of the list: a difference that
// is gone there is not found. That the op before the found one gives the same is checked by
// computing it once more; if it does not, as on a device that gives other bits in each run, the
// list is walked back from there op by op.
//
// Each cut compiles a program, so that some ten programs are compiled on each engine.
//
// Threads  any, beside steps and sessions of both engines; takes device_turn() of one after the
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
  std::size_t index = 0, of = 0;  // its place in the model's list, and the ops of that list
  std::string layer_or_name;      // its one weight, or "layer 3"; "" if it has neither
  double max_abs = 0;             // largest difference of two elements; infinite: one is no number
};

inline constexpr std::size_t most_tokens_to_bisect = 512;

// nullopt: no difference above `tolerance` was found; 0: not in any byte. BITNET_INVALID_ARGUMENT:
// 0 or too many tokens, an engine of several parts, or two engines whose lists are not the same.
result<std::optional<op_difference>> first_op_that_differs(
    const std::shared_ptr<engine::engine>& live, const std::shared_ptr<engine::engine>& shadow,
    std::span<const int32_t> tokens, double tolerance);

}  // namespace bitnet::shadow
