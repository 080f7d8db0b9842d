#include "sampling/sampler.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "sampling/candidate.hpp"
#include "sampling/exponential.hpp"
#include "sampling/history.hpp"
#include "sampling/mirostat.hpp"
#include "sampling/random.hpp"
#include "sampling/repetition.hpp"
#include "sampling/stages.hpp"

namespace bitnet::sampling {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// How many logits are infinite or NaN, and how many are above -infinity. No branches, so that the
// compiler uses whole registers for the rows of large vocabularies.
struct counts {
  uint32_t bad = 0, more = 0;
};
counts look_at(std::span<const float> logits) {
  counts out;
  for (const float l : logits) {
    out.bad += l < infinity ? 0 : 1;
    out.more += l > -infinity ? 1 : 0;
  }
  return out;
}

// The largest logit, with registers too; no logit is NaN.
float largest_of(std::span<const float> logits) {
  constexpr size_t lanes = 16;
  float most[lanes];
  std::ranges::fill(most, -infinity);
  size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes)
    for (size_t j = 0; j < lanes; ++j) most[j] = logits[i + j] > most[j] ? logits[i + j] : most[j];
  for (; i < logits.size(); ++i) most[0] = std::max(most[0], logits[i]);
  return *std::ranges::max_element(most);
}

std::unexpected<failure> out_of_range(const char* name, double value, const char* expected) {
  return fail(BITNET_INVALID_ARGUMENT,
              fmt::format("sampling parameter {} is {}; expected {}", name, value, expected));
}

result<void> check(const parameters& p, uint32_t n_vocab) {
  if (n_vocab == 0 || n_vocab > static_cast<uint32_t>(std::numeric_limits<int32_t>::max())) {
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("a sampler needs a vocabulary; it was given one of {}", n_vocab));
  }
#define BITNET_SAMPLING_CHECK(type, name, initial, accepted, expected, ...) \
  if (const type v = p.name; !(accepted)) return out_of_range(#name, v, expected);
  BITNET_SAMPLING_PARAMETERS(BITNET_SAMPLING_CHECK)
#undef BITNET_SAMPLING_CHECK
  // Biases are added for each token of a text. Forbidden end tokens are added to a client's biases.
  const uint64_t most_biases = 2 * uint64_t{n_vocab};
  if (p.logit_bias.size() > most_biases) {
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("logit_bias has {} entries; at most {} are possible, twice the "
                            "vocabulary: give each token once",
                            p.logit_bias.size(), most_biases));
  }
  for (const auto& [token, bias] : p.logit_bias) {
    if (token < 0 || static_cast<uint32_t>(token) >= n_vocab) {
      return fail(
          BITNET_INVALID_ARGUMENT,
          fmt::format("logit_bias names the token {}; the vocabulary has {}", token, n_vocab));
    }
    if (std::isnan(bias) || bias == infinity) {
      return out_of_range((fmt::format("logit_bias of token {}", token)).c_str(), bias,
                          "a number, or -inf = never");
    }
  }
  return {};
}

}  // namespace

struct sampler::contents {
  parameters p;
  uint32_t n_vocab;
  random_numbers random;
  history past;
  std::optional<repetition> repeated;  // if DRY is on
  mirostat surprise;
  std::vector<float> logits;  // (n_vocab), after bias and penalties
  // If only the largest logits are listed: their ids, ascending; other logits are not read then.
  std::vector<int32_t> listed;
  bool is_listed = false;
  std::vector<candidate> candidates;

  contents(const parameters& parameters, uint32_t n)
      : p(parameters),
        n_vocab(n),
        random(parameters.seed),
        past(parameters.repeat_last_n),
        surprise(parameters.mirostat_tau, parameters.mirostat_eta, n) {
    if (p.dry_multiplier > 0 && p.dry_penalty_last_n != 0)
      repeated.emplace(repetition::options{.multiplier = p.dry_multiplier,
                                           .base = p.dry_base,
                                           .allowed_length = p.dry_allowed_length,
                                           .last_n = p.dry_penalty_last_n},
                       n, p.dry_breakers);
  }

  result<void> take(std::span<const float> from) {
    if (from.size() != n_vocab) {
      return fail(BITNET_INTERNAL, fmt::format("expected {} logits, got {}", n_vocab, from.size()));
    }
    const counts seen = look_at(from);
    for (size_t i = 0; seen.bad != 0 && i < from.size(); ++i)
      if (!(from[i] < infinity)) return not_finite(i, from[i]);
    if (seen.more == 0) return none_finite(n_vocab);
    logits.assign(from.begin(), from.end());
    is_listed = false;
    return {};
  }

  result<void> take_listed(std::span<const int32_t> ids, std::span<const float> from) {
    logits.resize(n_vocab);
    listed.assign(ids.begin(), ids.end());
    std::ranges::sort(listed);
    is_listed = false;  // until all checks passed
    if (listed.empty() || listed.front() < 0 || static_cast<uint32_t>(listed.back()) >= n_vocab ||
        from.size() != ids.size() || std::ranges::adjacent_find(listed) != listed.end())
      return fail(BITNET_INTERNAL,
                  fmt::format("expected {} different tokens of {} and their logits; the backend is "
                              "at fault",
                              ids.size(), n_vocab));
    bool any = false;
    for (size_t i = 0; i < ids.size(); ++i) {
      any = any || from[i] > -infinity;
      if (!(from[i] < infinity)) return not_finite(static_cast<size_t>(ids[i]), from[i]);
      logits[static_cast<size_t>(ids[i])] = from[i];
    }
    if (!any) return none_finite(ids.size());
    is_listed = true;
    return {};
  }

  static std::unexpected<failure> not_finite(size_t token, float logit) {
    return fail(
        BITNET_INTERNAL,
        fmt::format("the model's logit of token {} is {}; its weights or the backend are at fault",
                    token, logit == infinity ? "infinite" : "NaN"));
  }
  static std::unexpected<failure> none_finite(size_t n) {
    return fail(
        BITNET_INTERNAL,
        fmt::format(
            "all of the model's {} logits are -infinite; its weights or the backend are at fault",
            n));
  }

  // The tokens to choose from: their number, and the i-th by id.
  [[nodiscard]] size_t count() const { return is_listed ? listed.size() : n_vocab; }
  [[nodiscard]] size_t token(size_t i) const {
    return is_listed ? static_cast<size_t>(listed[i]) : i;
  }

  // Word by word: most words have no bit set, or all.
  void leave_out_others(std::span<const uint64_t> allowed) {
    constexpr size_t bits = 64;
    if (is_listed && !allowed.empty()) {
      for (const int32_t id : listed) {
        const auto i = static_cast<size_t>(id);
        if ((allowed[i / bits] >> (i % bits) & 1) == 0) logits[i] = -infinity;
      }
      return;
    }
    for (size_t word = 0; word < allowed.size(); ++word) {
      if (allowed[word] == ~uint64_t{0}) continue;
      const size_t last = std::min<size_t>((word + 1) * bits, n_vocab);
      for (size_t i = word * bits; i < last; ++i)
        if ((allowed[word] >> (i % bits) & 1) == 0) logits[i] = -infinity;
    }
  }

  void add_bias() {
    for (const auto& [token, bias] : p.logit_bias) logits[static_cast<size_t>(token)] += bias;
  }

  // Penalises each distinct token once: repeat makes it less likely whatever its logit's sign;
  // frequency counts.
  void penalize() {
    if (p.repeat_penalty == 1 && p.presence_penalty == 0 && p.frequency_penalty == 0) return;
    for (const auto& [token, count] : past.counts()) {
      float& logit = logits[static_cast<size_t>(token)];
      logit = logit <= 0 ? logit * p.repeat_penalty : logit / p.repeat_penalty;
      logit -= static_cast<float>(count) * p.frequency_penalty + p.presence_penalty;
    }
  }

  void penalize_repetition() {
    for (const auto& [token, value] : repeated->penalties())
      logits[static_cast<size_t>(token)] -= value;
  }

  result<int32_t> choose(std::span<const uint64_t> allowed) {
    leave_out_others(allowed);
    add_bias();
    penalize();
    if (repeated) penalize_repetition();
    candidates.clear();
    const auto best = highest();
    if (!best || p.temperature <= 0) return best;
    if (p.mirostat != 0) return draw_by_surprise();
    keep_top_k();
    if (p.top_n_sigma > 0) keep_within_sigma();
    float highest_logit = logits[static_cast<size_t>(*best)];
    if (p.typical_p < 1) {
      weigh(candidates, 1);
      keep_typical(candidates, p.typical_p);
      highest_logit = std::ranges::max(candidates, {}, &candidate::logit).logit;
    }
    keep_likely(highest_logit);
    if (p.xtc_probability > 0) exclude_by_chance();
    return candidates[draw(weigh_for_draw())].id;
  }

  [[nodiscard]] result<int32_t> highest() const {
    const bool sound_row = !is_listed && look_at(logits).bad == 0;
    size_t best = token(0);
    if (sound_row)
      best = static_cast<size_t>(std::ranges::find(logits, largest_of(logits)) - logits.begin());
    for (size_t at = 0, n = sound_row ? 0 : count(); at < n; ++at) {
      const size_t i = token(at);
      // Logits are finite here: only bias and penalties can take them out of the range of float.
      if (!(logits[i] < infinity)) {
        return fail(
            BITNET_INVALID_ARGUMENT,
            fmt::format("the logit of token {} became infinite; use smaller biases and penalties",
                        i));
      }
      if (logits[i] > logits[best]) best = i;
    }
    if (logits[best] == -infinity) {
      return fail(
          BITNET_INVALID_ARGUMENT,
          "no token is left to choose from: every one that a grammar allows, or every one, is "
          "forbidden; use fewer biases");
    }
    return static_cast<int32_t>(best);
  }

  // Keeps all tokens in order of their ids; or the `top_k` best, sorted by a heap whose front is
  // the worst.
  void keep_top_k() {
    candidates.clear();
    const size_t n = count(), k = p.top_k == 0 ? n : std::min<size_t>(p.top_k, n);
    for (size_t at = 0; at < k; ++at)
      candidates.push_back({logits[token(at)], static_cast<int32_t>(token(at))});
    if (p.top_k == 0) return;
    std::ranges::make_heap(candidates, better);
    for (size_t at = k; at < n; ++at) {
      const size_t i = token(at);
      if (logits[i] <= candidates.front().logit) continue;  // of equal ones the lower id stays
      std::ranges::pop_heap(candidates, better);
      candidates.back() = {logits[i], static_cast<int32_t>(i)};
      std::ranges::push_heap(candidates, better);
    }
    std::ranges::sort_heap(candidates, better);
  }

  void keep_within_sigma() {
    std::vector<float> few;
    for (size_t at = 0; is_listed && at < count(); ++at) few.push_back(logits[token(at)]);
    const double least = least_within_sigma(is_listed ? few : logits, p.top_n_sigma);
    std::erase_if(candidates, [&](const candidate& c) { return c.logit < least; });
  }

  // Top-p and min-p each keep a beginning of the candidates in order of their logits, so together
  // they keep the shorter one. min-p needs no order and goes first: little is left to sort. The
  // share of top-p is of the candidates of the stages before.
  void keep_likely(float highest_logit) {
    double whole = 0;
    for (candidate& c : candidates) {
      c.weight = exponential(double{c.logit} - highest_logit);
      whole += c.weight;
    }
    std::erase_if(candidates,
                  [&](const candidate& c) { return c.weight < p.min_p || c.weight == 0; });
    if (p.top_p == 1) return;
    if (p.top_k == 0) std::ranges::sort(candidates, better);
    double sum = 0;
    size_t n = 0;
    while (n < candidates.size()) {
      sum += candidates[n++].weight;
      if (sum >= whole * p.top_p) break;
    }
    candidates.resize(n);
  }

  // One random number for each token, whatever the candidates are.
  void exclude_by_chance() {
    constexpr float most = 0.5F;  // no two tokens can both be likelier
    if (p.xtc_threshold > most || random.next_unit() >= p.xtc_probability) return;
    exclude_top_choices(candidates, p.xtc_threshold);
  }

  // Sets the weights, and returns their sum.
  double weigh_for_draw() {
    double temperature = p.temperature;
    if (p.dynatemp_range > 0) {
      weigh(candidates, 1);
      temperature = temperature_by_entropy(candidates,
                                           {p.temperature, p.dynatemp_range, p.dynatemp_exponent});
      if (temperature == 0) candidates = {std::ranges::min(candidates, better)};
    }
    return weigh(candidates, temperature == 0 ? 1 : temperature);
  }

  result<int32_t> draw_by_surprise() {
    for (size_t at = 0, n = count(); at < n; ++at)
      candidates.push_back({logits[token(at)], static_cast<int32_t>(token(at))});
    const double sum = weigh(candidates, p.temperature);
    if (p.mirostat == 1)
      surprise.keep_by_zipf(candidates);
    else
      surprise.keep_unsurprising(candidates, sum);
    double kept = 0;
    for (const candidate& c : candidates) kept += c.weight;
    const candidate& chosen = candidates[draw(kept)];
    surprise.learn(chosen.weight, kept);
    return chosen.id;
  }

  // Draws the index of a candidate. `whole`: the sum of the weights.
  size_t draw(double whole) {
    const double point = random.next_unit() * whole;
    double sum = 0;
    for (size_t i = 0; i < candidates.size(); ++i) {
      sum += candidates[i].weight;
      if (point < sum) return i;
    }
    return 0;  // `point` was rounded up to `whole`
  }
};

sampler::sampler(std::unique_ptr<contents> c) : contents_(std::move(c)) {}
sampler::sampler(sampler&&) noexcept = default;
sampler& sampler::operator=(sampler&&) noexcept = default;
sampler::~sampler() = default;

result<sampler> sampler::make(const parameters& p, uint32_t n_vocab) {
  if (auto checked = check(p, n_vocab); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  return sampler(std::make_unique<contents>(p, n_vocab));
}

// Biases and penalties that only lower logits can push as many tokens out of the largest.
uint32_t sampler::needed() const {
  const parameters& p = contents_->p;
  const bool greedy = p.temperature <= 0;
  if (!greedy && (p.top_k == 0 || p.top_n_sigma > 0 || p.mirostat != 0)) return 0;
  uint64_t n = greedy ? 1 : static_cast<uint64_t>(p.top_k);
  for (const auto& [token, bias] : p.logit_bias)
    if (bias > 0) return 0;
  n += p.logit_bias.size();
  if (p.repeat_penalty < 1 || p.presence_penalty < 0 || p.frequency_penalty < 0) return 0;
  if (p.repeat_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0)
    n += contents_->past.counts().size();
  if (contents_->repeated) n += contents_->repeated->penalties().size();
  return n < contents_->n_vocab ? static_cast<uint32_t>(n) : 0;
}

result<int32_t> sampler::sample(std::span<const float> logits, std::span<const uint64_t> allowed) {
  if (auto taken = contents_->take(logits); !taken)
    return std::unexpected(std::move(taken.error()));
  return contents_->choose(allowed);
}

result<int32_t> sampler::sample_listed(std::span<const int32_t> ids, std::span<const float> logits,
                                       std::span<const uint64_t> allowed) {
  if (auto taken = contents_->take_listed(ids, logits); !taken)
    return std::unexpected(std::move(taken.error()));
  return contents_->choose(allowed);
}

void sampler::accept(int32_t token) {
  if (token < 0 || static_cast<uint32_t>(token) >= contents_->n_vocab) return;
  contents_->past.add(token);
  if (contents_->repeated) contents_->repeated->add(token);
}

void sampler::reset() {
  contents_->random = random_numbers(contents_->p.seed);
  contents_->past.clear();
  contents_->surprise.reset();
  if (contents_->repeated) contents_->repeated->clear();
}

std::vector<probability> sampler::drawn_from() const {
  std::vector<probability> out;
  double sum = 0;
  for (const candidate& c : contents_->candidates) sum += c.weight;
  for (const candidate& c : contents_->candidates) out.push_back({c.id, c.weight / sum});
  return out;
}

}  // namespace bitnet::sampling
