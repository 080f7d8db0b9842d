// Any bytes as config.json: rejected with a reason, or counts and names that a model can be made
// of.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "huggingface/config.hpp"
#include "model/architectures/architecture.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace hf = bitnet::huggingface;
  const auto content = hf::parse_object({reinterpret_cast<const char*>(data), size}, "config.json");
  if (!content) {
    if (content.error().message.empty()) std::abort();
    return 0;
  }
  const auto known = bitnet::model::checkpoint_forms();
  // The same text stands for the files beside it.
  (void)hf::hints_of({.config = *content,
                      .tokenizer_config = *content,
                      .generation_config = *content,
                      .special_tokens = *content,
                      .added_tokens = *content});
  hf::members_left_out left_out;
  (void)hf::check_tokenizer_config(*content, left_out);
  for (const hf::file_row& file : hf::file_rows())
    if (const auto ok = hf::check_members(*content, file.name, "llama", left_out);
        !ok && ok.error().message.empty())
      std::abort();
  for (const char* tokenizer : {"gpt2", "llama"}) {
    bitnet::gguf::metadata_builder metadata;
    std::vector<bitnet::gguf::file::foreign_tensor> made;
    const auto about = hf::read_config(*content, tokenizer, known, metadata, made);
    if (!about) {
      if (about.error().message.empty()) std::abort();
      continue;
    }
    if (about->architecture.empty() || about->n_kv_heads > UINT32_MAX) std::abort();
    if (about->n_heads != 0 && about->n_kv_heads == 0) std::abort();
    if (bitnet::gguf::header_of(metadata, {}).empty()) std::abort();
  }
  return 0;
}
