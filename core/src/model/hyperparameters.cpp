#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "gguf/text.hpp"
#include "model/architectures/architecture.hpp"
#include "model/read.hpp"

namespace bitnet::model {
namespace {

using gguf::quote;

// Keys of llama's relatives that change what it computes, with their neutral value.
struct foreign_key {
  std::string_view name;
  double neutral;
};
constexpr std::array foreign_keys = {
    foreign_key{"expert_count", 0},
    foreign_key{"expert_used_count", 0},
    foreign_key{"attention.sliding_window", 0},
    foreign_key{"logit_scale", 1},
    foreign_key{"embedding_scale", 1},
    foreign_key{"residual_scale", 1},
    foreign_key{"attention.scale", 0},
    foreign_key{"attention.clamp_kqv", 0},
    foreign_key{"attn_logit_softcapping", 0},
    foreign_key{"final_logit_softcapping", 0},
    foreign_key{"attention.max_alibi_bias", 0},
};

result<void> check_foreign(const gguf::container& metadata, const keys& in) {
  for (const foreign_key& key : foreign_keys) {
    if (in.is_computed(key.name)) continue;
    const auto x = metadata.real(in.name(key.name));
    if (!x) return std::unexpected(x.error());
    if (x->value_or(key.neutral) != key.neutral)
      return fail(
          BITNET_UNSUPPORTED,
          fmt::format("metadata key {} asks for something that this program does not compute",
                      quote(in.name(key.name))));
  }
  for (const auto& [name, neutral] :
       {std::pair{"attention.causal", true}, {"use_parallel_residual", false}}) {
    const auto x = metadata.boolean(in.name(name));
    if (!x) return std::unexpected(x.error());
    if (x->value_or(neutral) != neutral)
      return fail(
          BITNET_UNSUPPORTED,
          fmt::format("metadata key {} asks for something that this program does not compute",
                      quote(in.name(name))));
  }
  return {};
}

stretch stretch_named(std::string_view kind, keys& in) {
  constexpr auto names =
      std::to_array<std::pair<std::string_view, stretch>>({{"none", stretch::none},
                                                           {"linear", stretch::linear},
                                                           {"yarn", stretch::yarn},
                                                           {"longrope", stretch::longrope}});
  // A factor without a kind has the meaning from before kinds existed.
  if (kind.empty())
    return in.has("rope.scaling.dynamic_factor") ? stretch::dynamic : stretch::linear;
  for (const auto& [name, meaning] : names)
    if (kind == name) return meaning;
  in.stop(
      fmt::format(
          "metadata key {} is {}; this program supports 'none', 'linear', 'yarn' and 'longrope'",
          quote(in.name("rope.scaling.type")), quote(kind)),
      BITNET_UNSUPPORTED);
  return stretch::none;
}

// A number whose inverse is finite; 1 if the key is absent or 0, which some writers use for "no
// scaling".
float factor_at(std::string_view key, keys& in) {
  if (!in.has(key) || in.is_zero(key)) return 1;
  const float factor = in.optional_positive(key).value_or(1);
  if (std::isfinite(1 / factor)) return factor;
  in.stop(
      fmt::format("metadata key {} is so small that its inverse overflows", quote(in.name(key))));
  return 1;
}

rope_scaling read_yarn(rope_scaling how, keys& in) {
  if (in.has("rope.scaling.yarn_ext_factor"))
    how.extrapolation = in.is_zero("rope.scaling.yarn_ext_factor")
                            ? 0
                            : in.optional_positive("rope.scaling.yarn_ext_factor").value_or(1);
  how.beta_fast = in.optional_positive("rope.scaling.yarn_beta_fast").value_or(how.beta_fast);
  how.beta_slow = in.optional_positive("rope.scaling.yarn_beta_slow").value_or(how.beta_slow);
  if (how.extrapolation > 1)
    in.stop(fmt::format("metadata key {} is above 1; expected a share from 0 to 1",
                        quote(in.name("rope.scaling.yarn_ext_factor"))));
  if (how.beta_fast < how.beta_slow)
    in.stop(fmt::format("metadata key {} is below yarn_beta_slow; expected it to be larger",
                        quote(in.name("rope.scaling.yarn_beta_fast"))));
  if (in.has("rope.scaling.yarn_log_multiplier") && !in.is_zero("rope.scaling.yarn_log_multiplier"))
    in.stop(fmt::format("metadata key {} asks for something that this program does not compute",
                        quote(in.name("rope.scaling.yarn_log_multiplier"))),
            BITNET_UNSUPPORTED);
  if (how.extrapolation > 0) how.magnitude *= yarn_magnitude(how.factor);
  how.magnitude *= factor_at("rope.scaling.yarn_attn_factor", in);
  return how;
}

rope_scaling read_scaling(uint32_t n_context, keys& in) {
  rope_scaling how;
  how.kind = stretch_named(in.text("rope.scaling.type"), in);
  if (how.kind == stretch::none) return how;
  how.original_context =
      in.optional_count("rope.scaling.original_context_length", contexts, n_context);
  if (how.kind == stretch::dynamic) {
    how.factor = factor_at("rope.scaling.dynamic_factor", in);
    return how;
  }
  // The second key is the older name of the first.
  const bool older = !in.has("rope.scaling.factor") || in.is_zero("rope.scaling.factor");
  how.factor = factor_at(older ? "rope.scale_linear" : "rope.scaling.factor", in);
  if (how.kind == stretch::linear) return how;
  how.magnitude = factor_at("rope.scaling.attn_factor", in);
  return how.kind == stretch::yarn ? read_yarn(how, in) : how;
}

activation gate_of(gate_rule rule, std::string_view vocabulary) {
  if (rule == gate_rule::gelu) return activation::gelu;
  const bool relu2 =
      rule == gate_rule::relu2 || (rule == gate_rule::of_vocabulary && vocabulary == "gpt2");
  return relu2 ? activation::relu2 : activation::silu;
}

result<void> check_heads(hyperparameters& shape, keys& in) {
  const auto n_heads = shape.n_heads;
  if (n_heads % shape.n_kv_heads != 0)
    return bad_data(
        fmt::format("the model has {} heads and {} key/value heads; expected a multiple", n_heads,
                    shape.n_kv_heads));
  if (!in.has("attention.key_length") && shape.n_embedding % n_heads != 0)
    return bad_data(
        fmt::format("the embedding of {} does not divide into {} heads, and there is no {}",
                    shape.n_embedding, n_heads, in.name("attention.key_length")));
  shape.head_dim = in.optional_count("attention.key_length", counts, shape.n_embedding / n_heads);
  const uint32_t value_dim = in.optional_count("attention.value_length", counts, shape.head_dim);
  shape.rope_dims = in.optional_count("rope.dimension_count", counts, shape.head_dim);
  if (auto ok = in.outcome(); !ok) return ok;
  if (value_dim != shape.head_dim)
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("keys of {} and values of {} elements per head; this program needs them equal",
                    shape.head_dim, value_dim));
  if (shape.head_dim % 2 != 0)
    return bad_data(fmt::format("the head size {} is odd; RoPE needs pairs", shape.head_dim));
  if (shape.rope_dims % 2 != 0 || shape.rope_dims > shape.head_dim)
    return bad_data(
        fmt::format("metadata key {} is {}; expected an even number up to the head size {}",
                    quote(in.name("rope.dimension_count")), shape.rope_dims, shape.head_dim));
  if (shape.rope_dims < shape.head_dim && shape.rope_scaling.magnitude != 1)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("RoPE scaling makes rotated elements larger, and {} of a head's {} are "
                            "rotated; this program needs all of them to be",
                            shape.rope_dims, shape.head_dim));
  if (shape.attention_divisor == 0)
    shape.attention_divisor = std::sqrt(static_cast<float>(shape.head_dim));
  if (uint64_t{n_heads} * shape.head_dim > exact_in_sum)
    return bad_data(fmt::format("{} heads of {}: {}", n_heads, shape.head_dim, widths.because));
  return {};
}

}  // namespace

result<hyperparameters> read_hyperparameters(const gguf::container& metadata, uint64_t n_tokens,
                                             const load_options& options, bool input_norms) {
  const auto written = metadata.text("general.architecture");
  const auto name = metadata.text("general.name");
  const auto vocabulary = metadata.text("tokenizer.ggml.model");
  for (const auto* r : {&written, &name, &vocabulary})
    if (!*r) return std::unexpected(r->error());
  const std::string_view spelled = written->value_or("");
  if (spelled.empty())
    return bad_data("metadata key 'general.architecture' is missing; is this a model?");
  const architecture* row = find_architecture(spelled);
  if (row == nullptr)
    return fail(BITNET_UNSUPPORTED, fmt::format("architecture {}; this program runs {}",
                                                quote(spelled), architecture_names()));
  hyperparameters shape;
  shape.arch = row;
  shape.architecture = spelled;
  shape.name = name->value_or("");
  shape.input_norms = row->input_norms && input_norms;
  keys in(metadata, spelled);
  shape.n_context = in.count("context_length", contexts);
  shape.n_embedding = in.count("embedding_length", widths);
  shape.n_layers = in.count("block_count", counts);
  shape.n_feed_forward = in.count("feed_forward_length", widths);
  shape.n_heads = in.count("attention.head_count", counts);
  shape.n_kv_heads = in.optional_count("attention.head_count_kv", counts, shape.n_heads);
  shape.n_vocab = in.optional_count("vocab_size", {1, INT32_MAX, "token ids have 32 bits"},
                                    static_cast<uint32_t>(std::min<uint64_t>(n_tokens, INT32_MAX)));
  shape.rope_base = in.optional_positive("rope.freq_base").value_or(shape.rope_base);
  shape.rope_scaling = read_scaling(shape.n_context, in);
  // YaRN scales each wave by its own divisor, the other kinds all waves alike.
  if (shape.rope_scaling.kind != stretch::yarn && shape.rope_scaling.kind != stretch::dynamic)
    shape.rope_scale = 1 / shape.rope_scaling.factor;
  shape.rms_epsilon = in.positive("attention.layer_norm_rms_epsilon");
  shape.pooling =
      in.optional_count("pooling_type", {0, INT32_MAX, "it is the number of a kind"}, 0);
  if (auto ok = in.outcome(); !ok) return std::unexpected(ok.error());
  row->read(shape, in);
  if (auto ok = in.outcome(); !ok) return std::unexpected(ok.error());
  if (shape.n_vocab != n_tokens)
    return bad_data(fmt::format("metadata key {} is {}, but the tokenizer has {} tokens",
                                quote(in.name("vocab_size")), shape.n_vocab, n_tokens));
  if (auto ok = check_heads(shape, in); !ok) return std::unexpected(ok.error());
  if (auto ok = check_foreign(metadata, in); !ok) return std::unexpected(ok.error());
  shape.trained_on_i8 = row->trained_on_i8 || shape.input_norms;
  shape.rope_neox = row->rope_neox;
  if (row->gate == gate_rule::gelu && options.gate)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("architecture {} is computed with GELU and nothing else; leave the "
                            "activation to the file",
                            quote(spelled)));
  shape.gate = options.gate.value_or(gate_of(row->gate, vocabulary->value_or("")));
  return shape;
}

}  // namespace bitnet::model
