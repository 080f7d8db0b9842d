// Any bytes as a GGUF file: rejected with a reason, or every view in it can be walked.
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "gguf/container.hpp"
#include "gguf/file.hpp"

namespace {

namespace gguf = bitnet::gguf;

uint64_t sum(std::span<const std::byte> bytes) {
  uint64_t out = 0;
  for (const std::byte b : bytes) out += std::to_integer<uint64_t>(b);
  return out;
}

uint64_t sum(std::string_view text) {
  return sum(std::as_bytes(std::span(text)));
}

uint64_t walk(const gguf::value& v) {
  uint64_t out = sum(v.bytes);
  if (v.type != gguf::value_type::array) {
    out += gguf::to_integer(v).has_value() + gguf::to_real(v).has_value() +
           gguf::to_boolean(v).has_value();
  } else {
    gguf::for_each_element(v, [&](const gguf::value& element) {
      out += walk(element);
      return true;
    });
  }
  return out;
}

void must(bool truth) {
  if (!truth) std::abort();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = gguf::file::view(bytes);
  if (!file) {
    must(!file.error().message.empty());
    return 0;
  }
  volatile uint64_t seen = 0;  // keeps the reads
  for (const gguf::entry& e : file->metadata().entries()) {
    must(file->metadata().find(e.key) == &e.content);
    seen = seen + sum(e.key) + walk(e.content);
  }
  uint64_t used = 0;
  for (const auto& t : file->tensors()) {
    must(file->find(t.info.name) == &t);
    must(t.info.elements > 0 && t.info.offset % file->metadata().alignment() == 0);
    must(t.info.bytes.size() <= t.info.available);
    used += t.info.bytes.size();
    seen = seen + sum(t.info.name) + sum(t.info.bytes);
  }
  must(used <= size);  // or two of them overlap
  return 0;
}
