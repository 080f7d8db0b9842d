#include "model/weight_builder.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include "gguf/bytes.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"

namespace bitnet::model {
namespace {

using gguf::quote;

constexpr uintptr_t alias_alignment = 32;  // of weight::alias

}  // namespace

weight_builder::weight_builder(loaded& to, const load_options& options, formats::q2_finding q2)
    : to_(to), options_(options), q2_(q2), taken_(to.file.tensors().size(), false) {
  if (const auto type = to.file.metadata().integer("general.file_type")) file_type_ = *type;
}

result<uint32_t> weight_builder::vector(const std::string& name, uint64_t k) {
  const auto from = take(name, k, 1);
  if (!from) return std::unexpected(from.error());
  return add(name, *from, formats::understand_vector(*from), 1);
}

result<uint32_t> weight_builder::factors(const std::string& name, uint64_t n, uint64_t m) {
  auto from = take(name, n, m);
  if (!from) return std::unexpected(from.error());
  from->k = n * m;
  from->m = 1;
  const auto index = add(name, *from, formats::understand_vector(*from), 2);
  if (!index) return index;
  to_.weights[*index].ne[0] = static_cast<int64_t>(n);
  to_.weights[*index].ne[1] = static_cast<int64_t>(m);
  return index;
}

result<std::vector<float>> weight_builder::numbers(const std::string& name, uint64_t k) {
  const auto from = take(name, k, 1);
  if (!from) return std::unexpected(from.error());
  auto understood = formats::understand_vector(*from);
  if (!understood) return pass_on(std::move(understood), fmt::format("tensor {}", quote(name)));
  std::vector<float> out(k);
  formats::convert(*from, *understood, 0, std::as_writable_bytes(std::span(out)));
  to_.made_of.emplace_back(name, *from);
  return out;
}

void weight_builder::skip_blocks(uint32_t first, uint32_t end) {
  constexpr std::string_view beginning = "blk.";
  for (size_t i = 0; i < taken_.size(); ++i) {
    const std::string_view name = to_.file.tensors()[i].info.name;
    if (!name.starts_with(beginning)) continue;
    uint32_t block = 0;
    const char* last = name.data() + name.size();
    const auto [after, wrong] = std::from_chars(name.data() + beginning.size(), last, block);
    const bool whole = wrong == std::errc() && after != last && *after == '.';
    if (!whole || block < first || block >= end) continue;
    taken_[i] = true;
    ++to_.n_skipped;
  }
}

result<uint32_t> weight_builder::matrix(const std::string& name, uint64_t k, uint64_t m) {
  auto from = take(name, k, m);
  if (!from) return std::unexpected(from.error());
  from->scales = scales_of(name, k * m);
  return add(name, *from, formats::understand(*from), 2);
}

result<uint32_t> weight_builder::linear(const std::string& name, uint64_t k, uint64_t m) {
  auto index = matrix(name + ".weight", k, m);
  const std::string scale_name = name + ".scale";
  // If it is taken already, it is no factor but the scales of blocks.
  if (!index || !has(scale_name) || is_taken(scale_name)) return index;
  const auto from = take(scale_name, 1, 1);
  if (!from) return std::unexpected(from.error());
  if (from->type != gguf::type::f32)
    return fail(BITNET_UNSUPPORTED, fmt::format("tensor {} has type {}; expected F32",
                                                quote(scale_name), gguf::type_name(from->type)));
  weight& w = to_.weights[*index];
  if (w.format != BITNET_FORMAT_TERNARY2)
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("tensor {} scales {} of type {}; only ternary weights can have a scale tensor",
                    quote(scale_name), quote(w.name), gguf::type_name(w.source_type)));
  const auto factor = gguf::load<float>(from->bytes);
  to_.scale_factors[*index] = factor;
  for (float& s : w.scales) {
    s *= factor;
    if (!std::isfinite(s))
      return bad_data(
          fmt::format("tensor {} makes a scale that is not a finite number", quote(scale_name)));
  }
  return index;
}

result<uint32_t> weight_builder::add_made(const std::string& name, std::vector<float> made,
                                          uint32_t n_rows) {
  const std::span<const float> numbers = to_.made.emplace_back(std::move(made));
  const formats::source from{.type = gguf::type::f32,
                             .k = numbers.size(),
                             .m = 1,
                             .bytes = std::as_bytes(numbers),
                             .alignment = alias_alignment};
  const auto index = add(name, from, formats::understand_vector(from), n_rows == 1 ? 1 : 2);
  if (!index || n_rows == 1) return index;
  weight& w = to_.weights[*index];
  w.ne[0] = static_cast<int64_t>(numbers.size() / n_rows);
  w.ne[1] = n_rows;
  return index;
}

result<void> weight_builder::check_all_taken() const {
  const auto left = std::ranges::find(taken_, false);
  if (left == taken_.end()) return {};
  const auto& t = to_.file.tensors()[static_cast<size_t>(left - taken_.begin())].info;
  return fail(BITNET_UNSUPPORTED,
              fmt::format("tensor {} has no place in the graph of architecture {}; computing "
                          "without it would give wrong text",
                          quote(t.name), quote(to_.shape.architecture)));
}

bool weight_builder::is_taken(const std::string& name) const {
  return taken_[static_cast<size_t>(to_.file.find(name) - to_.file.tensors().data())];
}

result<formats::source> weight_builder::take(const std::string& name, uint64_t k, uint64_t m) {
  const auto* found = to_.file.find(name);
  if (found == nullptr)
    return bad_data(fmt::format(
        "tensor {} is missing; the file is incomplete or of another architecture", quote(name)));
  taken_[static_cast<size_t>(found - to_.file.tensors().data())] = true;
  const gguf::tensor_info& t = found->info;
  if (t.ne != std::array<uint64_t, 4>{k, m, 1, 1})
    return bad_data(fmt::format("tensor {} has shape {}; the metadata asks for [{}{}]", quote(name),
                                shape_text(t), k, m == 1 ? "" : fmt::format(", {}", m)));
  return formats::source{.type = t.type,
                         .k = k,
                         .m = m,
                         .bytes = t.bytes,
                         .alignment = to_.file.containers()[found->shard].alignment(),
                         .i2s_layout = options_.i2s_layout,
                         .q2 = q2_,
                         .file_type = file_type_,
                         .tiles = options_.tl1_tiles,
                         .rotated_heads = found->rotated_heads,
                         .head_order = found->head_order};
}

formats::companion weight_builder::scales_of(const std::string& name, uint64_t n) {
  const auto stem = std::string_view(name).substr(0, name.rfind(".weight"));
  for (const std::string_view base : {std::string_view(name), stem})
    for (const char* suffix :
         {"_scale", ".scale", "_scales", ".scales", ".q_scales", ".d", ".qh"}) {
      const auto* found = to_.file.find(fmt::format("{}{}", base, suffix));
      if (found == nullptr) continue;
      const gguf::tensor_info& t = found->info;
      const bool whole = base == name && t.elements == 1;  // a single stem.scale is a factor
      if (!whole && (t.elements == 1 || t.elements != (n + 31) / 32)) continue;
      if (gguf::size_of(t.type).value_or(gguf::type_size{}).block != 1) continue;
      taken_[static_cast<size_t>(found - to_.file.tensors().data())] = true;
      return {.type = t.type, .elements = t.elements, .bytes = t.bytes};
    }
  return {};
}

std::string weight_builder::shape_text(const gguf::tensor_info& t) {
  std::string out = "[";
  for (uint32_t d = 0; d < t.rank; ++d) out += fmt::format("{}{}", d == 0 ? "" : ", ", t.ne[d]);
  return out + "]";
}

result<uint32_t> weight_builder::add(const std::string& name, const formats::source& from,
                                     result<formats::reading> understood, uint32_t rank) {
  if (!understood) return pass_on(std::move(understood), fmt::format("tensor {}", quote(name)));
  weight w;
  w.name = name;
  w.format = understood->format;
  w.rank = rank;
  w.ne[0] = static_cast<int64_t>(from.k);
  w.ne[1] = static_cast<int64_t>(from.m);
  w.data_bytes = understood->data_bytes;
  w.scale_group = understood->scale_group;
  w.scales = std::move(understood->scales);
  // Finding the scales read all of it, and it is read again tensor by tensor later.
  if (w.scale_group != 0) to_.file.give_back(from.bytes);
  w.source_type = from.type;
  if (understood->verbatim && reinterpret_cast<uintptr_t>(from.bytes.data()) % alias_alignment == 0)
    w.alias = from.bytes.first(w.data_bytes);
  to_.weights.push_back(std::move(w));
  to_.scale_factors.push_back(1);
  to_.sources.push_back(from);
  to_.readings.push_back(std::move(*understood));
  return static_cast<uint32_t>(to_.weights.size() - 1);
}

}  // namespace bitnet::model
