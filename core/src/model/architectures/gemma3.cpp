// Gemma 3's text model: norms of the outputs of attention and gated product, and in most layers a
// window and a RoPE of their own.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "gguf/text.hpp"
#include "huggingface/config_reading.hpp"
#include "model/architectures/architecture.hpp"

namespace bitnet::model {
namespace {

namespace hf = huggingface;
using gguf::quote;
using nlohmann::json;

// Each n-th layer has full attention, the others a window.
std::vector<bool> read_windowed(uint32_t n_layers, keys& in) {
  constexpr std::string_view pattern = "attention.sliding_window_pattern";
  if (auto given = in.truths(pattern, n_layers)) return *std::move(given);
  if (!in.outcome()) return {};
  const uint32_t period = in.optional_count(pattern, counts, 6);
  std::vector<bool> out(n_layers);
  for (uint32_t n = 0; n < n_layers; ++n) out[n] = (n + 1) % std::max(period, 1U) != 0;
  return out;
}

void read_gemma(hyperparameters& shape, keys& in) {
  in.computes("attention.sliding_window");
  in.computes("attention.scale");
  shape.head_norms = true;
  shape.post_norms = true;
  shape.embedding_scale = std::sqrt(static_cast<float>(shape.n_embedding));
  // bitnet.cpp's converter writes no key for models with norms of inputs; they have no window.
  if (!shape.input_norms || in.has("attention.sliding_window")) {
    shape.window = in.count("attention.sliding_window", contexts);
    shape.windowed = read_windowed(shape.n_layers, in);
  }
  shape.local_rope_base =
      in.optional_positive("rope.freq_base_swa").value_or(shape.local_rope_base);
  constexpr uint32_t layers_of_27b = 62;
  const uint32_t width = shape.n_embedding / shape.n_heads;
  if (in.has("attention.scale") && !in.is_zero("attention.scale"))
    shape.attention_divisor = 1 / in.optional_positive("attention.scale").value_or(1);
  else if (shape.n_layers == layers_of_27b)  // the 27B model, which no key identifies
    shape.attention_divisor = std::sqrt(static_cast<float>(width));
}

std::vector<layer_weight> gemma_weights(const hyperparameters& shape, uint32_t n) {
  std::vector<layer_weight> weights = llama_weights(shape, n);
  append(weights, head_norm_weights(shape));
  append(weights, {{&layer::post_attention_norm, "post_attention_norm", weight_kind::norm,
                    shape.n_embedding},
                   {&layer::post_ffw_norm, "post_ffw_norm", weight_kind::norm, shape.n_embedding}});
  return weights;
}

// Emits primitives for the outputs: no composite includes the norms behind them.
uint32_t gemma_layer(graph_builder& to, uint32_t n, uint32_t x) {
  const layer& l = to.layer_at(n);
  const uint32_t a = to.attend(queries(to, n, x), n);
  x = to.add(x, to.norm(to.linear_of(a, l.attn_output), l.post_attention_norm));
  const uint32_t g = gated_product(to, n, x);
  return to.add(x, to.norm(to.linear_of(g, l.ffn_down), l.post_ffw_norm));
}

result<hf::config> gemma_checkpoint(const json& c, const std::string& /*tokenizer*/) {
  if (const json& act = hf::at(c, "hidden_activation");
      !act.is_null() && act != "gelu_pytorch_tanh")
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: hidden_activation is {}; expected 'gelu_pytorch_tanh'",
                            quote(act.dump())));
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (!hf::at(c, key).is_null())
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("config.json: {} is set, which this program does not compute", key));
  if (hf::true_at(c, "use_bidirectional_attention"))
    return fail(BITNET_UNSUPPORTED,
                "config.json: use_bidirectional_attention is true; this program computes causal "
                "attention");
  if (auto ok = hf::check_biases(c); !ok) return std::unexpected(ok.error());
  auto kind = hf::linear_kind_of(c, hf::linear_kind::plain);
  if (!kind) return std::unexpected(kind.error());
  hf::config to;
  to.architecture = "gemma3";
  to.linear = *kind;
  to.usual_head_dim = 256;
  to.usual_kv_heads = 4;
  to.usual_theta = 1e6F;
  to.usually_tied = true;
  to.rope_member = "full_attention";
  to.norms_above_one = true;
  return to;
}

result<void> put_windows(const json& c, const hf::config& about, uint32_t head_dim,
                         const std::string& prefix, gguf::metadata_builder& out) {
  const auto window = hf::needed(c, "sliding_window");
  if (!window) return std::unexpected(window.error());
  out.u32(prefix + "attention.sliding_window", *window);
  constexpr uint32_t usual = 6;
  const auto period = hf::period_of(c, about.n_layers, "sliding_attention",
                                    {"sliding_window_pattern", "_sliding_window_pattern"}, usual);
  if (!period) return std::unexpected(period.error());
  if (*period != usual) out.u32(prefix + "attention.sliding_window_pattern", *period);
  const json& local = hf::at(hf::at(c, "rope_parameters"), "sliding_attention");
  if (const std::string kind = hf::text_at(local, "rope_type"); !kind.empty() && kind != "default")
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("config.json: RoPE scaling of type {} in layers with a window; expected "
                    "none",
                    quote(kind)));
  const auto theta = hf::number_at(local, "rope_theta").or_else([&] {
    return hf::number_at(c, "rope_local_base_freq");
  });
  out.f32(prefix + "rope.freq_base_swa", theta.value_or(10000));
  const float scalar = hf::number_at(c, "query_pre_attn_scalar").value_or(256);
  if (!(scalar > 0))
    return bad_data("config.json: expected a number above zero under 'query_pre_attn_scalar'");
  // For GGUF's readers 62 layers alone imply another scale.
  if (scalar != static_cast<float>(head_dim) || about.n_layers == 62)
    out.f32(prefix + "attention.scale", 1 / std::sqrt(scalar));
  return {};
}

constexpr std::array gemma_names = {
    hf::tensor_name{"post_attention_layernorm.weight", "post_attention_norm.weight", false, false},
    hf::tensor_name{"pre_feedforward_layernorm.weight", "ffn_norm.weight", false, false},
    hf::tensor_name{"post_feedforward_layernorm.weight", "post_ffw_norm.weight", false, false},
};

constexpr hf::checkpoint_form gemma_form = {.model_type = "gemma3_text",
                                            .read = gemma_checkpoint,
                                            .put = put_windows,
                                            .names = gemma_names};

}  // namespace

constinit const architecture rows::gemma3 = {.name = "gemma3",
                                             .gate = gate_rule::gelu,
                                             .input_norms = true,
                                             .read = read_gemma,
                                             .weights = gemma_weights,
                                             .layer = gemma_layer,
                                             .checkpoint = &gemma_form};

}  // namespace bitnet::model
