#include "huggingface/rope.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "gguf/text.hpp"
#include "gguf/types.hpp"

namespace bitnet::huggingface {
namespace {

using gguf::quote;

struct output {
  const std::string& prefix;
  gguf::metadata_builder& metadata;
  std::vector<gguf::file::foreign_tensor>& tensors;

  void number(const char* key, float x) const { metadata.f32(prefix + key, x); }
  void count(const char* key, uint32_t x) const { metadata.u32(prefix + key, x); }
  void kind(const char* name) const { metadata.text(prefix + "rope.scaling.type", name); }
  void tensor(const char* name, std::vector<float> numbers) const {
    auto kept = std::make_shared<const std::vector<float>>(std::move(numbers));
    tensors.push_back({.name = name,
                       .ne = {kept->size()},
                       .type = gguf::type::f32,
                       .bytes = std::as_bytes(std::span(*kept)),
                       .keeps = kept});
  }
};

std::unexpected<failure> lacks(const rope_config& c, const char* what) {
  return fail(BITNET_BAD_DATA, fmt::format("config.json: RoPE scaling of type {} without {}; the "
                                           "file is damaged or not written by transformers",
                                           quote(c.kind), what));
}

// x, or 0 if it is not above zero.
float positive(std::optional<float> x) {
  const float given = x.value_or(0);
  return std::isfinite(given) && given > 0 ? given : 0;
}

// Long waves are scaled by all of factor, short ones not, those between partly.
result<void> put_llama3(const rope_config& c, const output& to) {
  constexpr uint32_t most_dims = 65536;  // no model comes near
  if (c.head_dim > most_dims)
    return fail(BITNET_BAD_DATA,
                fmt::format("config.json: heads of {} elements; expected at most {}", c.head_dim,
                            most_dims));
  const double factor = positive(c.factor);
  const double low = positive(c.low_freq_factor), high = positive(c.high_freq_factor);
  if (factor == 0) return lacks(c, "a factor above zero");
  if (low == 0 || low >= high)
    return lacks(c, "a low_freq_factor above zero and a larger high_freq_factor");
  if (!c.original_context) return lacks(c, "original_max_position_embeddings");
  std::vector<float> divisors(c.head_dim / 2);
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    const double frequency = std::pow(double{c.theta}, -2.0 * static_cast<double>(i) / c.head_dim);
    const double turns = *c.original_context * frequency / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    divisors[i] = static_cast<float>(1 / ((1 - kept) / factor + kept));
  }
  to.tensor("rope_freqs.weight", std::move(divisors));
  return {};
}

float growth(float factor, float by) {
  return factor <= 1 ? 1.0F : 0.1F * by * std::log(factor) + 1;
}

result<void> put_yarn(const rope_config& c, const output& to) {
  const uint32_t original = c.original_context.value_or(c.longest_context);
  float factor = positive(c.factor);
  if (!c.factor && c.original_context && original != 0)
    factor = positive(static_cast<float>(c.longest_context) / static_cast<float>(original));
  if (factor == 0) return lacks(c, "a factor above zero");
  to.kind("yarn");
  to.number("rope.scaling.factor", factor);
  to.count("rope.scaling.original_context_length", original);
  if (c.beta_fast) to.number("rope.scaling.yarn_beta_fast", *c.beta_fast);
  if (c.beta_slow) to.number("rope.scaling.yarn_beta_slow", *c.beta_slow);
  auto whole = c.attention_factor;
  const float one = positive(c.mscale), all = positive(c.mscale_all);
  if (!whole && one != 0 && all != 0) whole = growth(factor, one) / growth(factor, all);
  // GGUF's factor multiplies the growth of YaRN itself.
  if (whole) to.number("rope.scaling.attn_factor", *whole / growth(factor, 1));
  return {};
}

result<void> put_longrope(const rope_config& c, const output& to) {
  const std::size_t pairs = c.head_dim / 2;
  if (c.short_factors.size() != pairs || c.long_factors.size() != pairs)
    return lacks(c, "a short_factor and a long_factor with a number for each pair of a head");
  const uint32_t original = c.original_context.value_or(c.longest_context);
  if (original < 2) return lacks(c, "original_max_position_embeddings");
  const float longer = c.original_context
                           ? static_cast<float>(c.longest_context) / static_cast<float>(original)
                           : c.factor.value_or(1);
  const float grown =
      longer <= 1 ? 1.0F : std::sqrt(1 + std::log(longer) / std::log(static_cast<float>(original)));
  to.kind("longrope");
  to.count("rope.scaling.original_context_length", original);
  to.number("rope.scaling.attn_factor", c.attention_factor.value_or(grown));
  to.tensor("rope_factors_short.weight", c.short_factors);
  to.tensor("rope_factors_long.weight", c.long_factors);
  return {};
}

}  // namespace

result<void> put_rope(const rope_config& c, const std::string& prefix,
                      gguf::metadata_builder& metadata,
                      std::vector<gguf::file::foreign_tensor>& tensors) {
  const output to{prefix, metadata, tensors};
  to.number("rope.freq_base", c.theta);
  if (c.kind.empty() || c.kind == "default") return {};
  if (c.kind == "llama3") return put_llama3(c, to);
  if (c.kind == "yarn") return put_yarn(c, to);
  if (c.kind == "longrope" || c.kind == "su") return put_longrope(c, to);
  if (c.kind != "linear" && c.kind != "dynamic")
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: RoPE scaling of type {}; this program supports 'linear', "
                            "'dynamic', 'llama3', 'yarn' and 'longrope'",
                            quote(c.kind)));
  const float factor = positive(c.factor);
  if (factor == 0) return lacks(c, "a factor above zero");
  if (c.kind == "linear") {
    to.kind("linear");
    to.number("rope.scaling.factor", factor);
    return {};
  }
  // A key of this program only: programs without it compute the same up to the original length.
  to.number("rope.scaling.dynamic_factor", factor);
  to.count("rope.scaling.original_context_length", c.original_context.value_or(c.longest_context));
  return {};
}

}  // namespace bitnet::huggingface
