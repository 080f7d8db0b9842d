#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "gguf/text.hpp"
#include "model/architectures.hpp"
#include "model/read.hpp"

namespace bitnet::model {
namespace {

using gguf::quote;

constexpr int64_t exact_in_float = int64_t{1} << 24;  // positions are multiplied as float32
constexpr int64_t exact_in_sum =
    (int64_t{1} << 23) - 1;  // int8 products that an int32 sum can hold

// What a count must lie between, and why it may not be more.
struct range {
  int64_t least, most;
  std::string_view because;
};
constexpr range contexts{1, exact_in_float, "positions beyond it are not exact in float32"};
constexpr range widths{1, exact_in_sum, "longer rows could overflow an int32 sum"};
constexpr range counts{1, 65535, "no model comes near"};

// Reads <architecture>.<name> keys; after the first failure every answer is a zero or a default.
class keys {
 public:
  keys(const gguf::container& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}

  [[nodiscard]] result<void> outcome() const {
    if (failure_) return std::unexpected(*failure_);
    return {};
  }
  [[nodiscard]] std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  [[nodiscard]] bool has(std::string_view key) const {
    return metadata_.find(name(key)) != nullptr;
  }
  [[nodiscard]] bool is_zero(std::string_view key) const {
    const gguf::value* v = metadata_.find(name(key));
    return v != nullptr && gguf::to_real(*v) == 0.0;
  }

  uint32_t count(std::string_view key, const range& within) {
    if (!has(key)) return missing(key);
    return optional_count(key, within, 0);
  }

  // A truth for each of n layers; nullopt: the key is no array of them.
  std::optional<std::vector<bool>> truths(std::string_view key, uint32_t n) {
    const gguf::value* v = metadata_.find(name(key));
    if (v == nullptr || v->type != gguf::value_type::array) return std::nullopt;
    std::vector<bool> out;
    gguf::for_each_element(*v, [&](const gguf::value& element) {
      const auto whole = gguf::to_integer(element);
      const auto x = whole ? std::optional(*whole != 0) : gguf::to_boolean(element);
      if (x && out.size() < n) out.push_back(*x);
      return x.has_value();
    });
    if (out.size() == n && v->count == n) return out;
    stop(
        fmt::format("metadata key {} has {} elements of type {}; expected true or false for each "
                    "of {} layers",
                    quote(name(key)), v->count, name_of(v->element), n));
    return std::nullopt;
  }

  uint32_t optional_count(std::string_view key, const range& within, uint32_t otherwise) {
    const gguf::value* v = metadata_.find(name(key));
    if (v == nullptr) return otherwise;
    bool same = true;
    const auto n = v->type == gguf::value_type::array ? common(*v, same) : gguf::to_integer(*v);
    if (!same)
      return stop(
          fmt::format("metadata key {} differs between layers, which this program does not support",
                      quote(name(key))),
          BITNET_UNSUPPORTED);
    if (!n)
      return stop(fmt::format("metadata key {} should be an integer, but is of type {}",
                              quote(name(key)), name_of(v->type)));
    if (*n < within.least || *n > within.most)
      return stop(fmt::format("metadata key {} is {}; expected {} to {}{}{}", quote(name(key)), *n,
                              within.least, within.most, *n > within.most ? ": " : "",
                              *n > within.most ? within.because : ""));
    return static_cast<uint32_t>(*n);
  }

  // A finite number above zero, if the key is there.
  std::optional<float> optional_positive(std::string_view key) {
    const auto x = metadata_.real(name(key));
    if (!x) {
      stop(x.error());
      return std::nullopt;
    }
    const std::optional<double> wide = *x;
    if (!wide) return std::nullopt;
    const auto narrow = static_cast<float>(*wide);
    if (std::isfinite(narrow) && narrow > 0) return narrow;
    stop(fmt::format("metadata key {} is not a finite number above zero; the file is damaged",
                     quote(name(key))));
    return std::nullopt;
  }

  float positive(std::string_view key) {
    if (!has(key)) missing(key);
    return optional_positive(key).value_or(0);
  }

  std::string text(std::string_view key) {
    const auto x = metadata_.text(name(key));
    if (x) return std::string(x->value_or(""));
    stop(x.error());
    return {};
  }

  // Keeps the first failure; answers what a reader answers after one.
  uint32_t stop(std::string message, bitnet_status status = BITNET_BAD_DATA) {
    return stop(failure{status, std::move(message)});
  }
  uint32_t stop(failure why) {
    if (!failure_) failure_ = std::move(why);
    return 0;
  }

 private:
  uint32_t missing(std::string_view key) {
    return stop(fmt::format(
        "metadata key {} is missing; expected the file to carry it: convert the model again",
        quote(name(key))));
  }

  // The one number that an array with an element per layer repeats.
  static std::optional<int64_t> common(const gguf::value& array, bool& same) {
    std::optional<int64_t> n;
    gguf::for_each_element(array, [&](const gguf::value& element) {
      const auto x = gguf::to_integer(element);
      same = !n || n == x;
      n = x;
      return same && x.has_value();
    });
    return n;
  }

  const gguf::container& metadata_;
  std::string prefix_;
  std::optional<failure> failure_;
};

// Keys of relatives of the llama graph that change what it computes, with the value that does not.
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

result<void> check_foreign(const gguf::container& metadata, const keys& in, bool gemma) {
  for (const foreign_key& key : foreign_keys) {
    if (gemma && (key.name == "attention.sliding_window" || key.name == "attention.scale"))
      continue;
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
  // Without a name a factor means what it meant before there were names.
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

// A number whose inverse is finite too: 1 where the key is absent or, as some writers put it for
// "no scaling", 0.
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
  // The second is an older name of the first.
  const bool older = !in.has("rope.scaling.factor") || in.is_zero("rope.scaling.factor");
  how.factor = factor_at(older ? "rope.scale_linear" : "rope.scaling.factor", in);
  if (how.kind == stretch::linear) return how;
  how.magnitude = factor_at("rope.scaling.attn_factor", in);
  return how.kind == stretch::yarn ? read_yarn(how, in) : how;
}

// Each n-th layer sees all, the others a window.
std::vector<bool> read_windowed(uint32_t n_layers, keys& in) {
  constexpr std::string_view pattern = "attention.sliding_window_pattern";
  if (auto given = in.truths(pattern, n_layers)) return *std::move(given);
  if (!in.outcome()) return {};
  const uint32_t period = in.optional_count(pattern, counts, 6);
  std::vector<bool> out(n_layers);
  for (uint32_t n = 0; n < n_layers; ++n) out[n] = (n + 1) % std::max(period, 1U) != 0;
  return out;
}

// What the architecture's row has beyond a llama's graph.
void read_gemma(hyperparameters& h, keys& in) {
  h.post_norms = true;
  h.embedding_scale = std::sqrt(static_cast<float>(h.n_embedding));
  h.window = in.count("attention.sliding_window", contexts);
  h.windowed = read_windowed(h.n_layers, in);
  h.local_rope_base = in.optional_positive("rope.freq_base_swa").value_or(h.local_rope_base);
  constexpr uint32_t layers_of_27b = 62;
  const uint32_t width = h.n_embedding / h.n_heads;
  if (in.has("attention.scale") && !in.is_zero("attention.scale"))
    h.attention_divisor = 1 / in.optional_positive("attention.scale").value_or(1);
  else if (h.n_layers == layers_of_27b)  // the one of its kind, which files tell by nothing else
    h.attention_divisor = std::sqrt(static_cast<float>(width));
}

// What the architecture's row has beyond a qwen3's graph.
void read_hybrid(hyperparameters& h, keys& in) {
  h.gated_attention = true;
  h.n_skipped = in.optional_count("nextn_predict_layers", {0, 65535, counts.because}, 0);
  if (h.n_skipped >= h.n_layers) {
    in.stop(fmt::format("metadata key {} is {}; expected fewer than the {} blocks",
                        quote(in.name("nextn_predict_layers")), h.n_skipped, h.n_layers));
    return;
  }
  h.n_layers -= h.n_skipped;
  const uint32_t period = in.optional_count("full_attention_interval", counts, 4);
  for (uint32_t n = 0; n < h.n_layers; ++n)
    h.recurrent.push_back((n + 1) % std::max(period, 1U) != 0);
  recurrence& r = h.recurrence;
  r.taps = in.count("ssm.conv_kernel", {2, 32, "no model comes near"});
  r.key_heads = in.count("ssm.group_count", counts);
  r.value_heads = in.count("ssm.time_step_rank", counts);
  r.key_dim = in.count("ssm.state_size", counts);
  const uint32_t inner = in.count("ssm.inner_size", widths);
  if (!in.outcome()) return;
  if (r.value_heads % r.key_heads != 0 || inner % r.value_heads != 0) {
    in.stop(
        fmt::format("{} heads of keys, {} of values and {} elements of values do not divide "
                    "into one another; the file is damaged",
                    r.key_heads, r.value_heads, inner));
    return;
  }
  r.value_dim = inner / r.value_heads;
  if (r.channels() > static_cast<uint64_t>(exact_in_sum) ||
      uint64_t{r.key_dim} * inner > INT32_MAX || h.state_elements() > INT32_MAX)
    in.stop(
        fmt::format("{} recurrent layers of {} heads of {} x {} make a state of more than 2^31 "
                    "elements; expected less",
                    h.n_recurrent(), r.value_heads, r.key_dim, r.value_dim));
  if (h.n_attending() == 0)
    in.stop(fmt::format("metadata key {} leaves no layer with attention among {}",
                        quote(in.name("full_attention_interval")), h.n_layers),
            BITNET_UNSUPPORTED);
}

activation gate_of(gate_rule rule, std::string_view vocabulary) {
  if (rule == gate_rule::gelu) return activation::gelu;
  const bool relu2 =
      rule == gate_rule::relu2 || (rule == gate_rule::of_vocabulary && vocabulary == "gpt2");
  return relu2 ? activation::relu2 : activation::silu;
}

result<void> check_heads(hyperparameters& h, keys& in) {
  const auto n_heads = h.n_heads;
  if (n_heads % h.n_kv_heads != 0)
    return bad_data(
        fmt::format("the model has {} heads and {} key/value heads; expected a multiple", n_heads,
                    h.n_kv_heads));
  if (!in.has("attention.key_length") && h.n_embedding % n_heads != 0)
    return bad_data(
        fmt::format("the embedding of {} does not divide into {} heads, and there is no {}",
                    h.n_embedding, n_heads, in.name("attention.key_length")));
  h.head_dim = in.optional_count("attention.key_length", counts, h.n_embedding / n_heads);
  const uint32_t value_dim = in.optional_count("attention.value_length", counts, h.head_dim);
  h.rope_dims = in.optional_count("rope.dimension_count", counts, h.head_dim);
  if (auto ok = in.outcome(); !ok) return ok;
  if (value_dim != h.head_dim)
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("keys of {} and values of {} elements per head; this program needs them equal",
                    h.head_dim, value_dim));
  if (h.head_dim % 2 != 0)
    return bad_data(fmt::format("the head size {} is odd; RoPE needs pairs", h.head_dim));
  if (h.rope_dims % 2 != 0 || h.rope_dims > h.head_dim)
    return bad_data(
        fmt::format("metadata key {} is {}; expected an even number up to the head size {}",
                    quote(in.name("rope.dimension_count")), h.rope_dims, h.head_dim));
  if (h.rope_dims < h.head_dim && h.rope_scaling.magnitude != 1)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("RoPE scaling makes rotated elements larger, and {} of a head's {} are "
                            "rotated; this program needs all of them to be",
                            h.rope_dims, h.head_dim));
  if (h.attention_divisor == 0) h.attention_divisor = std::sqrt(static_cast<float>(h.head_dim));
  if (uint64_t{n_heads} * h.head_dim > exact_in_sum)
    return bad_data(fmt::format("{} heads of {}: {}", n_heads, h.head_dim, widths.because));
  return {};
}

}  // namespace

result<hyperparameters> read_hyperparameters(const gguf::container& metadata, uint64_t n_tokens,
                                             const load_options& options) {
  const auto architecture = metadata.text("general.architecture");
  const auto name = metadata.text("general.name");
  const auto vocabulary = metadata.text("tokenizer.ggml.model");
  for (const auto* r : {&architecture, &name, &vocabulary})
    if (!*r) return std::unexpected(r->error());
  const std::string_view spelled = architecture->value_or("");
  if (spelled.empty())
    return bad_data("metadata key 'general.architecture' is missing; is this a model?");
  const auto* which = find_architecture(spelled);
  if (which == nullptr)
    return fail(BITNET_UNSUPPORTED, fmt::format("architecture {}; this program runs {}",
                                                quote(spelled), architecture_names()));
  hyperparameters h;
  h.architecture = spelled;
  h.name = name->value_or("");
  keys in(metadata, spelled);
  h.n_context = in.count("context_length", contexts);
  h.n_embedding = in.count("embedding_length", widths);
  h.n_layers = in.count("block_count", counts);
  h.n_feed_forward = in.count("feed_forward_length", widths);
  h.n_heads = in.count("attention.head_count", counts);
  h.n_kv_heads = in.optional_count("attention.head_count_kv", counts, h.n_heads);
  h.n_vocab = in.optional_count("vocab_size", {1, INT32_MAX, "token ids have 32 bits"},
                                static_cast<uint32_t>(std::min<uint64_t>(n_tokens, INT32_MAX)));
  h.rope_base = in.optional_positive("rope.freq_base").value_or(h.rope_base);
  h.rope_scaling = read_scaling(h.n_context, in);
  // YaRN stretches each wave by its own divisor, the others all alike.
  if (h.rope_scaling.kind != stretch::yarn && h.rope_scaling.kind != stretch::dynamic)
    h.rope_scale = 1 / h.rope_scaling.factor;
  h.rms_epsilon = in.positive("attention.layer_norm_rms_epsilon");
  if (auto ok = in.outcome(); !ok) return std::unexpected(ok.error());
  if (which->gemma) read_gemma(h, in);
  if (which->hybrid) read_hybrid(h, in);
  if (auto ok = in.outcome(); !ok) return std::unexpected(ok.error());
  if (h.n_vocab != n_tokens)
    return bad_data(fmt::format("metadata key {} is {}, but the tokenizer has {} tokens",
                                quote(in.name("vocab_size")), h.n_vocab, n_tokens));
  if (auto ok = check_heads(h, in); !ok) return std::unexpected(ok.error());
  if (auto ok = check_foreign(metadata, in, which->gemma); !ok) return std::unexpected(ok.error());
  h.sub_norms = which->sub_norms;
  h.head_norms = which->head_norms;
  h.trained_on_i8 = which->trained_on_i8;
  h.rope_neox = which->rope_neox;
  if (which->gate == gate_rule::gelu && options.gate)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("architecture {} is computed with GELU and nothing else; leave the "
                            "activation to the file",
                            quote(spelled)));
  h.gate = options.gate.value_or(gate_of(which->gate, vocabulary->value_or("")));
  return h;
}

}  // namespace bitnet::model
