#include "sequence/embedding.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "generate/token_ids.hpp"

namespace bitnet::sequence {
namespace {

// One row after the other, so that the sum has one order whatever the size of steps.
result<void> take_mean(session& s, std::span<const int32_t> ids, std::span<float> out) {
  std::vector<double> sum(out.size());
  std::vector<float> rows(std::min<std::size_t>(s.batch(), ids.size()) * out.size());
  for (std::size_t first = 0; first < ids.size(); first += s.batch()) {
    const auto step = ids.subspan(first, std::min<std::size_t>(s.batch(), ids.size() - first));
    const auto all = std::span(rows).first(step.size() * out.size());
    if (auto ok = s.eval(step, true, all); !ok) return ok;
    for (std::size_t i = 0; i < all.size(); ++i) sum[i % out.size()] += all[i];
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(sum[i] / static_cast<double>(ids.size()));
  return {};
}

result<void> pool(session& s, std::span<const int32_t> ids, pooling by, std::span<float> out) {
  switch (by) {
    case pooling::mean:
      return take_mean(s, ids, out);
    case pooling::cls:
      return s.eval(ids.first(1), false, out);
    case pooling::last:
      break;
  }
  return s.eval(ids, false, out);
}

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
                          "3 (last): choose one of them as pooling",
                          number));
}

const char* name_of(pooling by) {
  return by == pooling::mean ? "mean" : by == pooling::cls ? "cls" : "last";
}

result<void> embed(session& s, std::span<const int32_t> ids, pooling by, std::span<float> out) {
  if (ids.empty())
    return fail(BITNET_INVALID_ARGUMENT, "there are no tokens to make an embedding of");
  if (ids.size() > s.capacity())
    return fail(BITNET_CONTEXT_FULL,
                fmt::format("{} tokens do not fit the context of {}; use a shorter text or a "
                            "larger n_context",
                            ids.size(), s.capacity()));
  if (auto ok = generate::check_ids(ids, s.owner().model().shape().n_vocab); !ok) return ok;
  auto done = s.truncate(0);
  if (done) done = pool(s, ids, by, out);
  if (auto ok = s.truncate(0); done && !ok) return ok;
  return done ? normalise(out) : done;
}

}  // namespace bitnet::sequence
