#include "crossval/compare.hpp"

#include <algorithm>
#include <cmath>

#include "crossval/stream.hpp"

namespace bitnet::host::crossval {
namespace {

double cosine_of(double dot, double ours, double theirs) {
  if (ours == 0 && theirs == 0) return 1;
  if (ours == 0 || theirs == 0) return 0;
  return std::clamp(dot / (std::sqrt(ours) * std::sqrt(theirs)), -1.0, 1.0);
}

void note_first(std::optional<std::size_t>& at, std::size_t position) {
  if (!at) at = position;
}

}  // namespace

row_difference compare_rows(std::span<const float> ours, std::span<const float> theirs) {
  row_difference out;
  double dot = 0;
  double square_of_ours = 0;
  double square_of_theirs = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double a = ours[i];
    const double b = theirs[i];
    out.finite = out.finite && std::isfinite(a) && std::isfinite(b);
    dot += a * b;
    square_of_ours += a * a;
    square_of_theirs += b * b;
    out.max_abs = std::max(out.max_abs, std::abs(a - b));
  }
  if (!out.finite) return {.finite = false, .cosine = 0, .max_abs = 0, .same_top = false};
  out.cosine = cosine_of(dot, square_of_ours, square_of_theirs);
  out.same_top = std::ranges::max_element(ours) - ours.begin() ==
                 std::ranges::max_element(theirs) - theirs.begin();
  return out;
}

prompt_comparison::prompt_comparison(std::span<const int32_t> ours, std::span<const int32_t> theirs,
                                     const bounds& within)
    : within_(within) {
  outcome_.n_ours = ours.size();
  outcome_.n_theirs = theirs.size();
  const std::size_t common = common_length(ours, theirs);
  if (common != ours.size() || common != theirs.size()) outcome_.first_other_token = common;
}

void prompt_comparison::add(const row_difference& row) {
  const std::size_t at = outcome_.n_compared++;
  if (!row.finite) {
    note_first(outcome_.first_not_finite, at);
    note_first(outcome_.first_beyond, at);
    note_first(outcome_.first_other_top, at);
    return;
  }
  if (!outcome_.min_cosine || row.cosine < *outcome_.min_cosine) {
    outcome_.min_cosine = row.cosine;
    outcome_.min_cosine_at = at;
  }
  if (!outcome_.max_abs || row.max_abs > *outcome_.max_abs) {
    outcome_.max_abs = row.max_abs;
    outcome_.max_abs_at = at;
  }
  if (row.same_top)
    ++outcome_.n_same_top;
  else
    note_first(outcome_.first_other_top, at);
  if (row.cosine < within_.min_cosine || row.max_abs > within_.max_abs)
    note_first(outcome_.first_beyond, at);
}

}  // namespace bitnet::host::crossval
