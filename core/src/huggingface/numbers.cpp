#include "huggingface/numbers.hpp"

#include <memory>
#include <span>
#include <utility>

#include "base/floats.hpp"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"

namespace bitnet::huggingface {

std::vector<float> numbers_of(const gguf::file::foreign_tensor& t) {
  const std::size_t width = t.type == gguf::type::f32 ? 4 : 2;
  std::vector<float> out;
  out.reserve(t.bytes.size() / width);
  for (auto rest = t.bytes; rest.size() >= width; rest = rest.subspan(width))
    out.push_back(t.type == gguf::type::f32   ? gguf::load<float>(rest)
                  : t.type == gguf::type::f16 ? from_f16(gguf::load<uint16_t>(rest))
                                              : from_bf16(gguf::load<uint16_t>(rest)));
  return out;
}

void replace(gguf::file::foreign_tensor& t, std::vector<float> numbers) {
  auto made = std::make_shared<std::vector<float>>(std::move(numbers));
  t.type = gguf::type::f32;
  t.bytes = std::as_bytes(std::span(*made));
  t.keeps = std::move(made);
}

}  // namespace bitnet::huggingface
