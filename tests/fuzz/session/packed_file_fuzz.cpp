// Any bytes as a file of packed weights: refused with a reason, or the form lies inside the bytes.
#include <cstdint>
#include <cstdlib>

#include "session/pack_cache.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  const auto form = bitnet::session::read_packed(file, "key");
  if (!form) {
    if (form.error().message.empty()) std::abort();
    return 0;
  }
  const bool inside =
      form->data() >= file.data() && form->data() + form->size() <= file.data() + file.size();
  if (!inside) std::abort();
  return 0;
}
