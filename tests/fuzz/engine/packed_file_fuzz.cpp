// Any bytes as a file of packed weights: rejected with a reason, or the form lies inside the bytes.
// Each input is read as it is, and once more with right checksums, which no mutation finds.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "engine/pack_cache.hpp"

namespace {

constexpr uint64_t header_bytes = 4096;
constexpr uint64_t chunk_bytes = uint64_t{4} << 20;

bool read(std::span<const std::byte> file) {
  const auto form = bitnet::engine::read_packed(file, "key");
  if (!form) {
    if (form.error().message.empty()) std::abort();
    return false;
  }
  const bool inside = form->data() >= file.data() && form->size() <= file.size() &&
                      form->data() + form->size() <= file.data() + file.size();
  if (!inside) std::abort();
  uint8_t sum = 0;
  for (const std::byte b : *form) sum = static_cast<uint8_t>(sum + static_cast<uint8_t>(b));
  [[maybe_unused]] const volatile uint8_t used = sum;
  return true;
}

void put(std::vector<std::byte>& to, uint64_t at, uint64_t number) {
  std::memcpy(to.data() + at, &number, sizeof number);
}

void put_checksums(std::vector<std::byte>& file) {
  put(file, header_bytes - 8, XXH3_64bits(file.data(), header_bytes - 8));
  uint64_t form = 0;
  std::memcpy(&form, file.data() + 8, sizeof form);
  const uint64_t rest = file.size() - header_bytes;
  if (form > rest) return;
  uint64_t at = header_bytes + form;
  for (uint64_t begin = 0; begin < form && file.size() - at >= 8; begin += chunk_bytes, at += 8)
    put(file, at,
        XXH3_64bits(file.data() + header_bytes + begin, std::min(chunk_bytes, form - begin)));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read(bytes);
  if (size < header_bytes) return 0;
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  put_checksums(file);
  read(file);
  return 0;
}
