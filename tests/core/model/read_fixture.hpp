#pragma once
// A file in memory, and a model of two-bit weights, for tests of what is read of a model.
#include "model/read.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "small_model.hpp"

namespace bitnet::tests {

// A file in memory that starts at a multiple of 32, as a mapped one does.
class image {
 public:
  explicit image(const bytes& content) : room_(content.size() + 32) {
    auto at = reinterpret_cast<uintptr_t>(room_.data());
    at = (at + 31) / 32 * 32;
    start_ = room_.data() + (at - reinterpret_cast<uintptr_t>(room_.data()));
    std::copy(content.begin(), content.end(), start_);
    size_ = content.size();
  }
  [[nodiscard]] result<model::loaded> load(const model::load_options& options = {}) const {
    auto file = gguf::file::view({start_, size_});
    if (!file) return std::unexpected(file.error());
    return model::read(std::move(*file), options);
  }

 private:
  bytes room_;
  std::byte* start_;
  size_t size_;
};

inline bytes streamed(const model::loaded& m, uint32_t index) {
  bytes out;
  const auto ok = model::stream(
      m, index, [&](uint64_t offset, std::span<const std::byte> piece) -> result<void> {
        EXPECT_EQ(offset, out.size());
        EXPECT_LE(piece.size(), size_t{4} << 20);
        out.insert(out.end(), piece.begin(), piece.end());
        return {};
      });
  EXPECT_TRUE(ok) << ok.error().message;
  return out;
}

// K x M weights of -1, 0, +1 in groups of 128 with f16 scales of 0.5 and 0.25.
inline bytes two_bit_data(uint64_t k, uint64_t m, bool scale_last = false) {
  bytes out;
  for (uint64_t g = 0; g < k * m / 128; ++g) {
    const uint16_t d = g % 2 == 0 ? 0x3800 : 0x3400;
    if (!scale_last) put(out, d);
    for (uint64_t j = 0; j < 32; ++j)
      out.push_back(
          static_cast<std::byte>((g + j) % 3 | (g + j / 3) % 3 << 2 | (j + 1) % 3 << 4 | 2 << 6));
    if (scale_last) put(out, d);
  }
  return out;
}

// With every matrix, the embedding too, of type 42 and groups of 128.
inline gguf_builder two_bit_model(bool scale_last = false, uint32_t type = 42) {
  gguf_builder b = small_model("llama");
  for (auto& t : b.tensors)
    if (t.type == 36 || t.name == "token_embd.weight") {
      t.type = type;
      t.data = two_bit_data(t.ne[0], t.ne[1], scale_last);
    }
  return b;
}

}  // namespace bitnet::tests
