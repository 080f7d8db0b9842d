// BitNet b1.58: a llama with a norm before the last matrix of attention and of the gated product,
// trained with quantised activations.
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "huggingface/config_reading.hpp"
#include "model/architectures/architecture.hpp"

namespace bitnet::model {
namespace {

namespace hf = huggingface;

void read_bitnet(hyperparameters& shape, keys& /*in*/) {
  shape.sub_norms = true;
}

std::vector<layer_weight> bitnet_weights(const hyperparameters& shape, uint32_t n) {
  std::vector<layer_weight> weights = llama_weights(shape, n);
  append(weights,
         {{&layer::attn_sub_norm, "attn_sub_norm", weight_kind::norm,
           uint64_t{shape.n_heads} * shape.head_dim},
          {&layer::ffn_sub_norm, "ffn_sub_norm", weight_kind::norm, shape.n_feed_forward}});
  return weights;
}

result<hf::config> bitnet_checkpoint(const nlohmann::json& c, const std::string& tokenizer) {
  auto to = hf::silu_or(c, "relu2", hf::linear_kind::master);
  if (!to) return to;
  for (const auto& [key, wanted] : {std::pair{"weight_bits", 1U}, {"input_bits", 8U}})
    if (const auto bits = hf::count_at(c, key).value_or(wanted); bits != wanted)
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("config.json: {} is {}; this program computes BitNet with {}", key,
                              bits, wanted));
  to->usual_theta = 500000;
  to->usual_kv_heads = 5;
  // The name and the tokenizer imply the activation: docs/reference/models.md#gate
  to->architecture = hf::text_at(c, "hidden_act") == "silu" ? "bitnet"
                     : tokenizer == "gpt2"                  ? "bitnet-b1.58"
                                                            : "bitnet-25";
  return to;
}

constexpr hf::checkpoint_form bitnet_form = {.model_type = "bitnet", .read = bitnet_checkpoint};

constexpr architecture bitnet_row(std::string_view name, std::string_view also, gate_rule gate) {
  return {.name = name,
          .also = also,
          .gate = gate,
          .trained_on_i8 = true,
          .read = read_bitnet,
          .weights = bitnet_weights,
          .checkpoint = &bitnet_form};
}

}  // namespace

// bitnet-b1.58 names two kinds of models; only those with SiLU have an SPM vocabulary.
// docs/reference/models.md#gate
constinit const architecture rows::bitnet = bitnet_row("bitnet", "", gate_rule::silu);
constinit const architecture rows::bitnet_25 = bitnet_row("bitnet-25", "", gate_rule::relu2);
constinit const architecture rows::bitnet_b158 =
    bitnet_row("bitnet-b1.58", "bitnet-158", gate_rule::of_vocabulary);

}  // namespace bitnet::model
