// Any text as tokenizer.json: rejected with a reason, or metadata that parses. The first byte is
// the size of the vocabulary.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gguf/container.hpp"
#include "huggingface/tokenizer_json.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  bitnet::huggingface::tokenizer_hints hints;
  hints.n_vocab = data[0];
  hints.bos_text = "<s>";
  hints.chat_template = "x";
  bitnet::gguf::metadata_builder out;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  bitnet::huggingface::members_left_out left_out;
  const auto kind = bitnet::huggingface::read_tokenizer(text, hints, out, left_out);
  if (!kind) {
    if (kind.error().message.empty()) std::abort();
    return 0;
  }
  const auto header = bitnet::gguf::header_of(out, {});
  if (!bitnet::gguf::container::parse(header)) std::abort();
  return 0;
}
