#include "tokenizer/end_tokens.hpp"

namespace bitnet::tokenizer {
namespace {

// In order of preference if a vocabulary has several.
constexpr std::string_view turn_ends[] = {"<|eot_id|>",    "<|im_end|>",    "<|end|>",
                                          "<end_of_turn>", "<|endoftext|>", "<EOT>"};
constexpr std::string_view message_end = "<|eom_id|>";

// For infilling: padding, repository and file separators; a vocabulary may have several.
constexpr std::string_view infill[] = {"<|fim_pad|>",   "<fim-pad>",  "<PAD>",  "<|fim_repo|>",
                                       "<|repo_name|>", "<fim-repo>", "<REPO>", "<|file_sep|>"};

}  // namespace

void find_end_tokens(vocabulary& v) {
  const auto add = [&](std::string_view text) {
    const auto id = v.find(text);
    if (id) {
      v.types[static_cast<size_t>(*id)] = token_type::control;
      v.ends.insert(*id);
    }
    return id;
  };
  for (const std::string_view text : turn_ends) {
    const auto id = add(text);
    if (!v.eot) v.eot = id;
  }
  const auto eom = add(message_end);
  if (!v.eom) v.eom = eom;
  for (const std::string_view text : infill) {
    if (const auto id = v.find(text); id && v.type(*id) == token_type::control) v.ends.insert(*id);
  }
  // A model that generates padding, a repository or a file during infilling has finished.
  for (const auto& id : {v.eos, v.eot, v.eom, v.infill.pad, v.infill.rep, v.infill.sep}) {
    if (id) v.ends.insert(*id);
  }
}

}  // namespace bitnet::tokenizer
