#include "form_trials.hpp"

#include <utility>

namespace bitnet::rocm {

using gpu::delta_trial, gpu::product_trial;

std::vector<gpu::form_trial> form_trials() {
  std::vector<gpu::form_trial> out;
  // An odd number of blocks, and rows and tokens of several waves that end within a tile.
  out.push_back({{"linear_ternary_dots", "linear_ternary_matrix_few", "linear_ternary_matrix_many"},
                 product_trial(384, 140, 37, 0, 0)});
  // Groups of activations within one of weights and the reverse, and either alone.
  for (const auto& [own, given] : {std::pair{128u, 32u}, {32u, 128u}, {64u, 0u}, {0u, 96u}})
    out.push_back({{"linear_ternary_matrix_factored"}, product_trial(384, 40, 18, own, given)});
  out.push_back({{"delta_rule_64"}, delta_trial(64)});
  return out;
}

}  // namespace bitnet::rocm
