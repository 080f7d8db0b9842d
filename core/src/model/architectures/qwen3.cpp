// Qwen3: a llama with norms of each head of q and k.
#include "huggingface/config_reading.hpp"
#include "model/architectures/architecture.hpp"

namespace bitnet::model {
namespace {

namespace hf = huggingface;

void read_qwen3(hyperparameters& shape, keys& /*in*/) {
  shape.head_norms = true;
}

std::vector<layer_weight> qwen3_weights(const hyperparameters& shape, uint32_t n) {
  std::vector<layer_weight> weights = llama_weights(shape, n);
  append(weights, head_norm_weights(shape));
  return weights;
}

result<hf::config> qwen3_checkpoint(const nlohmann::json& c, const std::string& /*tokenizer*/) {
  auto to = hf::silu_or(c, "", hf::linear_kind::plain);
  if (!to) return to;
  to->architecture = "qwen3";
  to->usual_head_dim = 128;
  to->usual_kv_heads = 32;
  return to;
}

constexpr hf::checkpoint_form qwen3_form = {.model_type = "qwen3", .read = qwen3_checkpoint};

}  // namespace

constinit const architecture rows::qwen3 = {.name = "qwen3",
                                            .input_norms = true,
                                            .read = read_qwen3,
                                            .weights = qwen3_weights,
                                            .checkpoint = &qwen3_form};

}  // namespace bitnet::model
