// Any bytes as a model: rejected with a reason, or every weight can be streamed in a form that
// keeps the promises of bitnet/abi/tensor.h. The first byte chooses the options, the rest is the
// file.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "bitnet/abi/tensor.h"
#include "model/read.hpp"

namespace {

using bitnet::model::load_options;
using bitnet::model::loaded;

// Forms larger than this only repeat what smaller ones show, slowly.
constexpr uint64_t largest_weight = uint64_t{1} << 20;

void must(bool truth) {
  if (!truth) std::abort();
}

void check_weight(const loaded& m, uint32_t index) {
  const auto& w = m.weights[index];
  const bool ternary = w.format == BITNET_FORMAT_TERNARY2;
  must(w.format != BITNET_FORMAT_NONE && w.ne[0] > 0 && w.ne[1] > 0);
  must(w.alias.empty() || w.alias.size() == w.data_bytes);
  must(ternary == !w.scales.empty());
  for (const float s : w.scales) must(std::isfinite(s));
  if (w.data_bytes > largest_weight) return;
  uint64_t next = 0;
  const auto ok = bitnet::model::stream(
      m, index, [&](uint64_t offset, std::span<const std::byte> piece) -> bitnet::result<void> {
        must(offset == next && !piece.empty());
        next += piece.size();
        for (const std::byte b : piece) {
          const auto bits = std::to_integer<uint32_t>(b);
          must(!ternary || (bits & bits >> 1 & 0x55U) == 0);
        }
        return {};
      });
  must(ok.has_value() && next == w.data_bytes);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  load_options options;
  options.i2s_layout = data[0] % 4;
  options.tl1_tiles = (data[0] & 0x40) != 0 ? bitnet::formats::tl1_tiles::pretuned
                                            : bitnet::formats::tl1_tiles::generated;
  options.vocabulary_only = (data[0] & 0x80) != 0;
  auto file = bitnet::gguf::file::view(std::as_bytes(std::span(data + 1, size - 1)));
  if (!file) return 0;
  auto m = bitnet::model::read(std::move(*file), options);
  if (!m) {
    must(!m.error().message.empty());
    return 0;
  }
  for (uint32_t i = 0; i < m->weights.size(); ++i) check_weight(*m, i);
  must(m->vocabulary.tokens.size() == m->shape.n_vocab);
  if (auto tokens = bitnet::tokenizer::tokenizer::make(std::move(m->vocabulary)); !tokens)
    must(!tokens.error().message.empty());
  return 0;
}
