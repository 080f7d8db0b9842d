#include "sequence/embedding.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/wording.hpp"
#include "generate/token_ids.hpp"

namespace bitnet::sequence {
namespace {

result<void> take_mean(session& s, std::span<const int32_t> ids, std::span<float> out) {
  generate::embedding mean(pooling::mean);
  std::vector<float> rows(std::min<std::size_t>(s.batch(), ids.size()) * out.size());
  for (std::size_t first = 0; first < ids.size(); first += s.batch()) {
    const auto step = ids.subspan(first, std::min<std::size_t>(s.batch(), ids.size() - first));
    const auto all = std::span(rows).first(step.size() * out.size());
    if (auto ok = s.eval(step, true, all); !ok) return ok;
    for (std::size_t i = 0; i < all.size(); i += out.size()) mean.add(all.subspan(i, out.size()));
  }
  return mean.finish(out);
}

// Evaluates `ids` and takes the row of the last one.
result<void> take_last(session& s, std::span<const int32_t> ids, std::span<float> out) {
  generate::embedding last(pooling::last);
  std::vector<float> row(out.size());
  if (auto ok = s.eval(ids, false, row); !ok) return ok;
  last.add(row);
  return last.finish(out);
}

result<void> pool(session& s, std::span<const int32_t> ids, pooling by, std::span<float> out) {
  if (by == pooling::mean) return take_mean(s, ids, out);
  return take_last(s, by == pooling::cls ? ids.first(1) : ids, out);
}

}  // namespace

result<void> embed(session& s, std::span<const int32_t> ids, pooling by, std::span<float> out) {
  if (ids.empty())
    return fail(BITNET_INVALID_ARGUMENT, "there are no tokens to make an embedding of");
  if (ids.size() > s.capacity())
    return fail(BITNET_CONTEXT_FULL,
                fmt::format("{} tokens do not fit the context of {}; use a shorter text or a "
                            "larger {}",
                            ids.size(), s.capacity(), say(word::n_context)));
  if (auto ok = generate::check_ids(ids, s.owner().model().shape().n_vocab); !ok) return ok;
  auto done = s.truncate(0);
  if (done) done = pool(s, ids, by, out);
  if (auto ok = s.truncate(0); done && !ok) return ok;
  return done;
}

}  // namespace bitnet::sequence
