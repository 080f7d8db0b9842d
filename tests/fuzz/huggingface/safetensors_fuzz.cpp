// Any bytes as a safetensors file: rejected with a reason, or every tensor lies inside the bytes.
#include <cstdint>
#include <cstdlib>

#include "huggingface/safetensors.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  const auto tensors = bitnet::huggingface::read_safetensors(file);
  if (!tensors) {
    if (tensors.error().message.empty()) std::abort();
    return 0;
  }
  for (const auto& t : *tensors) {
    const bool inside = t.bytes.data() >= file.data() &&
                        t.bytes.data() + t.bytes.size() <= file.data() + file.size();
    if (!inside || t.bytes.empty()) std::abort();
  }
  return 0;
}
