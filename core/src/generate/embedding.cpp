#include "generate/embedding.hpp"

#include <fmt/core.h>

#include <cmath>

#include "base/wording.hpp"

namespace bitnet::generate {
namespace {

// A vector of zeros has no direction and stays.
result<void> normalise(std::span<float> x) {
  double squares = 0;
  for (const float v : x) squares += double{v} * double{v};
  if (!std::isfinite(squares))
    return fail(BITNET_BAD_DATA,
                "the hidden state is not finite: a weight of the model is not a number");
  if (squares == 0) return {};
  const double length = std::sqrt(squares);
  for (float& v : x) v = static_cast<float>(v / length);
  return {};
}

}  // namespace

result<pooling> pooling_of(uint32_t number) {
  if (number == 0) return pooling::last;
  if (number <= static_cast<uint32_t>(pooling::last)) return static_cast<pooling>(number);
  return fail(BITNET_UNSUPPORTED,
              fmt::format("the file's pooling_type is {}; this program knows 1 (mean), 2 (cls) and "
                          "3 (last): {}",
                          number, say(word::choose_pooling)));
}

const char* name_of(pooling by) {
  return by == pooling::mean ? "mean" : by == pooling::cls ? "cls" : "last";
}

void embedding::begin() {
  n_rows_ = 0;
  sum_.clear();
}

void embedding::add(std::span<const float> row) {
  if (!needs_all_rows()) {
    sum_.assign(row.begin(), row.end());
    n_rows_ = 1;
    return;
  }
  sum_.resize(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) sum_[i] += double{row[i]};
  ++n_rows_;
}

result<void> embedding::finish(std::span<float> out) const {
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(sum_[i] / static_cast<double>(n_rows_));
  return normalise(out);
}

}  // namespace bitnet::generate
