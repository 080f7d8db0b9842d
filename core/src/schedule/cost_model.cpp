#include "schedule/cost_model.hpp"

#include <algorithm>
#include <bit>

namespace bitnet::schedule {
namespace {

constexpr double weight_of_new = 0.25;  // after some 8 steps an outlier is forgotten
// After this many steps with prompts, one step has none, so that decodes are measured alone.
// Prompts lose 1/64 of the steps by it.
constexpr uint32_t most_unmeasured = 64;
// After this many pieces below measured_chunk, one piece is large enough to learn p from. Such a
// step may exceed the bound, so it is fewer than 1 in 100.
constexpr uint32_t most_small = 128;

// The rows of a step whose piece has at least `chunk` tokens, rounded up to row_grain.
uint32_t rows_with(uint32_t n_decodes, uint32_t chunk) {
  return (n_decodes + chunk + row_grain - 1) / row_grain * row_grain;
}

}  // namespace

void cost_model::average::add(double value) {
  value_ = known_ ? value_ + weight_of_new * (value - value_) : value;
  known_ = true;
}

std::size_t cost_model::kind_of(uint32_t n_decodes) {
  return n_decodes == 0 ? 0 : static_cast<std::size_t>(std::bit_width(n_decodes - 1));
}

void cost_model::learn(uint32_t n_decodes, uint32_t n_prompt, std::chrono::nanoseconds took) {
  const auto ns = static_cast<double>(took.count());
  of_decodes& alone = decodes_[kind_of(n_decodes)];
  if (n_prompt == 0) {
    alone.ns.add(ns);
    alone.steps_since = 0;
    return;
  }
  if (n_decodes > 0) ++alone.steps_since;
  const bool seldom = small_in_a_row_ >= most_small;
  small_in_a_row_ = n_prompt < measured_chunk ? small_in_a_row_ + 1 : 0;
  if (n_prompt < measured_chunk) return;
  // A step reads the weights once, whatever it computes. So the base of a step without decodes is
  // the time of the fewest decodes. While that is unknown, it would all count as the prompt's.
  const auto known = [](const of_decodes& one) { return one.ns.known(); };
  const auto fewest = std::ranges::find_if(decodes_, known);
  if (fewest == decodes_.end()) return;
  const double base = n_decodes > 0 && known(alone) ? alone.ns.value() : fewest->ns.value();
  const double each = std::max(ns - base, 0.0) / n_prompt;
  prompt_ns_.add(each);
  // Otherwise one outlier would keep pieces small for thousands of steps.
  if (seldom && each < prompt_ns_.value()) prompt_ns_.set(each);
}

double cost_model::decode_ns(uint32_t n_decodes) const {
  return decodes_[kind_of(n_decodes)].ns.value();
}

uint32_t cost_model::prompt_tokens(uint32_t n_decodes) const {
  if (n_decodes == 0) return no_bound;
  const of_decodes& alone = decodes_[kind_of(n_decodes)];
  if (!alone.ns.known() || alone.steps_since >= most_unmeasured) return 0;
  const uint32_t measured = rows_with(n_decodes, measured_chunk) - n_decodes;
  if (!prompt_ns_.known() || small_in_a_row_ >= most_small) return measured;
  const double room = (stretch_ - 1) * alone.ns.value();
  if (prompt_ns_.value() <= 0) return no_bound;
  const double grains = (n_decodes + room / prompt_ns_.value()) / row_grain;
  constexpr uint32_t most_grains = no_bound / row_grain;
  const auto rows = static_cast<uint32_t>(std::min<double>(grains, most_grains)) * row_grain;
  return std::max(rows, rows_with(n_decodes, least_chunk)) - n_decodes;
}

}  // namespace bitnet::schedule
