// Any bytes as model.safetensors.index.json: rejected with a reason, or names of files in its
// folder.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "huggingface/config.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace hf = bitnet::huggingface;
  const auto content = hf::parse_object({reinterpret_cast<const char*>(data), size}, "index");
  if (!content) {
    if (content.error().message.empty()) std::abort();
    return 0;
  }
  const auto files = hf::files_of_index(*content, "index");
  if (!files) {
    if (files.error().message.empty()) std::abort();
    return 0;
  }
  if (files->empty()) std::abort();
  for (const std::string& file : *files)
    if (file.empty() || file == "." || file == ".." || file.find('/') != std::string::npos ||
        file.find('\0') != std::string::npos)
      std::abort();
  return 0;
}
