// MiniCPM, and its ternary form BitCPM4: a llama that scales embeddings, the output of each part of
// a layer, and the input of the head.
#include <fmt/core.h>

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

// Indices in hyperparameters::own.
constexpr std::size_t of_residuals = 0, of_lm_head = 1;

void read_minicpm(hyperparameters& shape, keys& in) {
  for (const char* key : {"embedding_scale", "residual_scale", "logit_scale"}) in.computes(key);
  shape.embedding_scale = in.positive("embedding_scale");
  shape.own[of_residuals] = in.positive("residual_scale");
  shape.own[of_lm_head] = 1 / in.positive("logit_scale");  // divides the logits
  if (in.outcome() && !std::isfinite(shape.own[of_lm_head]))
    in.stop(fmt::format("metadata key {} is so small that its inverse overflows",
                        quote(in.name("logit_scale"))));
}

uint32_t minicpm_layer(graph_builder& to, uint32_t n, uint32_t x) {
  const layer& l = to.layer_at(n);
  const float scale = to.shape().own[of_residuals];
  const uint32_t a = to.attend(queries(to, n, x), n);
  x = to.add(x, to.scaled(to.linear_of(a, l.attn_output), scale));
  const uint32_t g = gated_product(to, n, x);
  return to.add(x, to.scaled(to.linear_of(g, l.ffn_down), scale));
}

uint32_t minicpm_lm_head(graph_builder& to, uint32_t x) {
  const uint32_t normed = to.norm(to.asked_rows(x), to.about().output_norm);
  return to.linear_of(to.scaled(normed, to.shape().own[of_lm_head]), to.about().output);
}

result<hf::config> minicpm_checkpoint(const json& c, const std::string& /*tokenizer*/) {
  if (hf::at(c, "sparse_config").is_object())
    return fail(BITNET_UNSUPPORTED,
                "config.json: sparse_config lets attention skip parts of the text, which this "
                "program does not compute; without it the model attends to all");
  auto to = hf::silu_or(c, "", hf::linear_kind::plain);
  if (!to) return to;
  to->architecture = "minicpm";
  to->rotates_neighbours = true;
  to->usually_tied = true;
  return to;
}

result<void> put_scales(const json& c, const hf::config& about, uint32_t /*head_dim*/,
                        const std::string& prefix, gguf::metadata_builder& out) {
  std::array<float, 4> numbers{};
  constexpr std::array keys = {"scale_emb", "scale_depth", "hidden_size", "dim_model_base"};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    numbers[i] = hf::number_at(c, keys[i]).value_or(0);
    if (!(numbers[i] > 0))
      return bad_data(
          fmt::format("config.json: expected a number above zero under {}", quote(keys[i])));
  }
  out.f32(prefix + "embedding_scale", numbers[0]);
  out.f32(prefix + "residual_scale", numbers[1] / std::sqrt(static_cast<float>(about.n_layers)));
  out.f32(prefix + "logit_scale", numbers[2] / numbers[3]);
  return {};
}

constexpr hf::checkpoint_form minicpm_form = {
    .model_type = "minicpm", .read = minicpm_checkpoint, .put = put_scales};

}  // namespace

constinit const architecture rows::minicpm = {.name = "minicpm",
                                              .rope_neox = false,
                                              .read = read_minicpm,
                                              .layer = minicpm_layer,
                                              .lm_head = minicpm_lm_head,
                                              .checkpoint = &minicpm_form};

}  // namespace bitnet::model
