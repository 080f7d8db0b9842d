#include "reload/verify.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sequence/session.hpp"

namespace bitnet::reload {
namespace {

// A prompt spread over the vocabulary, so that all of the embedding and output head are read.
std::vector<int32_t> prompt(uint32_t n, uint32_t n_vocab) {
  std::vector<int32_t> out(n);
  for (uint32_t i = 0; i < n; ++i)
    out[i] = static_cast<int32_t>(uint64_t{i + 1} * 2654435761U % n_vocab);
  return out;
}

result<std::vector<float>> logits_of(const engine::engine_ptr& e, const std::vector<int32_t>& ids) {
  engine::session_options o;
  o.n_context = o.n_batch = static_cast<uint32_t>(ids.size());
  o.deterministic = true;
  o.own_kv = true;
  auto s = sequence::session::open(e, o, 0);
  if (!s) return std::unexpected(std::move(s.error()));
  std::vector<float> out(ids.size() * e->model().shape().n_vocab);
  if (auto ok = (*s)->eval(ids, true, out); !ok) return std::unexpected(std::move(ok.error()));
  return out;
}

}  // namespace

result<comparison> compare(const engine::engine_ptr& old, const engine::engine_ptr& fresh,
                           uint32_t n_tokens, double tolerance) {
  const auto& shape = fresh->model().shape();
  comparison out;
  out.tokens = std::clamp<uint32_t>(n_tokens, 1, std::min(shape.n_context, uint32_t{512}));
  const auto ids = prompt(out.tokens, shape.n_vocab);
  const auto is = logits_of(fresh, ids);
  if (!is) return pass_on(result<std::vector<float>>(is), "the new copy cannot compute");
  if (!std::ranges::all_of(*is, [](float x) { return std::isfinite(x); }))
    return fail(
        BITNET_REJECTED,
        "the new copy computes logits that are no numbers; keep the old file, and report it "
        "to the backend's author");
  const auto was = logits_of(old, ids);
  if (!was) return out;
  out.compared = true;
  for (uint64_t row = 0; row < ids.size(); ++row) {
    double largest = 0, apart = 0;
    for (uint64_t i = row * shape.n_vocab; i < (row + 1) * shape.n_vocab; ++i) {
      largest = std::max(largest, std::fabs(double{(*was)[i]}));
      apart = std::max(apart, std::fabs(double{(*was)[i]} - double{(*is)[i]}));
    }
    if (apart > 0) out.difference = std::max(out.difference, largest > 0 ? apart / largest : 1);
  }
  if (out.difference > tolerance)
    return fail(BITNET_REJECTED,
                fmt::format("the new copy computes other logits: they differ by {} of the largest "
                            "one, at most {} expected over {} tokens",
                            out.difference, tolerance, out.tokens));
  return out;
}

}  // namespace bitnet::reload
