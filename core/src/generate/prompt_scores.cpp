#include "generate/prompt_scores.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace bitnet::generate {
namespace {

result<void> check(std::span<const float> logits, uint64_t at) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto bad = std::ranges::find_if(logits, [](float l) { return !(l < infinity); });
  if (bad != logits.end())
    return fail(
        BITNET_INTERNAL,
        fmt::format("behind token {} of the prompt the model's logit of token {} is {}; its "
                    "weights or the backend are at fault",
                    at, bad - logits.begin(), *bad == infinity ? "infinite" : "NaN"));
  if (std::ranges::any_of(logits, [](float l) { return l > -infinity; })) return {};
  return fail(BITNET_INTERNAL,
              fmt::format("behind token {} of the prompt all of the model's {} logits are "
                          "-infinite; its weights or the backend are at fault",
                          at, logits.size()));
}

}  // namespace

result<scored> prompt_scores::take(const tokenizer::tokenizer& tokens,
                                   std::span<const int32_t> prompt, const logits_row* before) {
  scored out;
  out.token = prompt[next_];
  if (before != nullptr) {
    if (auto ok = check(before->logits, next_ - 1); !ok)
      return std::unexpected(std::move(ok.error()));
    find_logprobs(before->logits, out.token, n_top_, out.logprobs);
  }
  auto piece = tokens.piece(out.token, false, next_ == 0);
  if (!piece) return std::unexpected(std::move(piece.error()));
  out.text = characters_.push(*piece);
  if (++next_ == prompt.size()) out.text += characters_.finish();
  return out;
}

}  // namespace bitnet::generate
