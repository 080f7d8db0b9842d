#pragma once
// Checks that the same work gives the same tokens each time.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "basic/result.hpp"
#include "bitnet/bitnet.h"

namespace bitnet::host {

struct repeat_outcome {
  int64_t n_same = 0;
  std::string difference;  // "run 2: token 5 is 17 in place of 12"; "": none
};
// Runs the work `n` more times and compares the tokens with `first`. Stops at the first failure,
// such as Ctrl-C.
[[nodiscard]] result<repeat_outcome> repeated(
    const std::vector<bitnet_token>& first, int64_t n,
    const std::function<result<std::vector<bitnet_token>>()>& again);

}  // namespace bitnet::host
