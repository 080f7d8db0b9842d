// Llama and models with the same graph: Falcon3 and Falcon-E, TriLM.
#include "huggingface/config_reading.hpp"
#include "model/architectures/architecture.hpp"

namespace bitnet::model {
namespace {

namespace hf = huggingface;

result<hf::config> llama_checkpoint(const nlohmann::json& c, const std::string& /*tokenizer*/) {
  auto to = hf::silu_or(c, "", hf::linear_kind::plain);
  if (!to) return to;
  to->architecture = "llama";
  to->rotates_neighbours = true;
  return to;
}

constexpr hf::checkpoint_form llama_form = {.model_type = "llama", .read = llama_checkpoint};

}  // namespace

constinit const architecture rows::llama = {
    .name = "llama", .rope_neox = false, .checkpoint = &llama_form};

}  // namespace bitnet::model
