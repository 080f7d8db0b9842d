#include "generate/generate.hpp"

#include <algorithm>
#include <chrono>

#include "bitnet/bitnet.h"
#include "generate/text_stream.hpp"

namespace bitnet::generate {
namespace {

using clock = std::chrono::steady_clock;

uint64_t ns_since(clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start).count());
}

bool asked_to_stop(const options& o) {
  return o.cancelled != nullptr && o.cancelled->load(std::memory_order_relaxed);
}

// Ids that must not be sampled when the end of generation is ignored.
void forbid_end(sampling::parameters& p, const tokenizer::tokenizer& tokens) {
  constexpr float never = -1e30F;
  for (uint32_t id = 0; id < tokens.size(); ++id)
    if (tokens.ends_generation(static_cast<int32_t>(id)))
      p.logit_bias.emplace_back(static_cast<int32_t>(id), never);
}

}  // namespace

result<outcome> run(session::session& s, std::span<const int32_t> prompt, const options& o) {
  const tokenizer::tokenizer& tokens = s.owner().model().tokens();
  sampling::parameters parameters = o.sampling;
  if (o.ignore_end) forbid_end(parameters, tokens);
  auto sampler = sampling::sampler::make(parameters, s.owner().model().shape().n_vocab);
  if (!sampler) return std::unexpected(std::move(sampler.error()));

  outcome out;
  out.tokens.reserve(std::min<uint64_t>(static_cast<uint32_t>(o.max_tokens), s.capacity()));
  std::vector<float> logits(s.owner().model().shape().n_vocab);
  for (const int32_t id : s.tokens()) sampler->accept(id);
  for (const int32_t id : prompt) sampler->accept(id);
  auto start = clock::now();
  const uint64_t before = s.tokens().size();
  if (auto ok = s.eval_top(prompt, sampler->needed(), logits); !ok) {
    if (ok.error().status != BITNET_CANCELLED) return std::unexpected(std::move(ok.error()));
    out.stop_reason = BITNET_STOP_CANCELLED;
    return out;
  }
  out.n_prompt = s.tokens().size() - before;
  out.prompt_ns = ns_since(start);

  text_stream stream(o.stop_strings);
  const auto show = [&](const std::string& text) {
    return text.empty() || !o.text || o.text(text);
  };
  start = clock::now();
  while (out.stop_reason == 0) {
    if (o.max_tokens >= 0 && out.tokens.size() >= static_cast<uint64_t>(o.max_tokens)) {
      out.stop_reason = BITNET_STOP_LENGTH;
      break;
    }
    if (asked_to_stop(o)) {
      out.stop_reason = BITNET_STOP_CANCELLED;
      break;
    }
    if (s.tokens().size() >= s.capacity()) {
      out.stop_reason = BITNET_STOP_CONTEXT;
      break;
    }
    auto id = sampler->sample(logits);
    if (!id) return std::unexpected(std::move(id.error()));
    sampler->accept(*id);
    if (auto ok = s.append(*id); !ok) return std::unexpected(std::move(ok.error()));
    out.tokens.push_back(*id);

    if (const auto at = std::find(o.stop_tokens.begin(), o.stop_tokens.end(), *id);
        at != o.stop_tokens.end()) {
      out.stop_reason = BITNET_STOP_TOKEN;
      out.stop_index = static_cast<uint32_t>(at - o.stop_tokens.begin());
      break;
    }
    if (!o.ignore_end && tokens.ends_generation(*id)) {
      out.stop_reason = BITNET_STOP_EOS;
      break;
    }
    auto piece = tokens.piece(*id, false, s.tokens().size() == 1);
    if (!piece) return std::unexpected(std::move(piece.error()));
    const bool go_on = show(stream.push(*piece));
    if (const auto stop = stream.stopped_by()) {
      out.stop_reason = BITNET_STOP_STRING;
      out.stop_index = static_cast<uint32_t>(*stop);
      break;
    }
    if (!go_on) {
      out.stop_reason = BITNET_STOP_CANCELLED;
      break;
    }
    if (o.max_tokens >= 0 && out.tokens.size() >= static_cast<uint64_t>(o.max_tokens)) continue;
    if (auto ok = s.eval_top({}, sampler->needed(), logits); !ok) {
      if (ok.error().status != BITNET_CANCELLED) return std::unexpected(std::move(ok.error()));
      out.stop_reason = BITNET_STOP_CANCELLED;
    }
  }
  out.generate_ns = ns_since(start);
  show(stream.finish());
  return out;
}

}  // namespace bitnet::generate
