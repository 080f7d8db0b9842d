#include "model/read.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "gguf/bytes.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"
#include "model/architectures/architecture.hpp"

namespace bitnet::model {
namespace {

using gguf::quote;

constexpr uint64_t largest_piece = uint64_t{4} << 20;  // bytes, of model::stream_weight
constexpr uintptr_t alias_alignment = 32;              // of weight::alias

// Takes tensors by name out of the file, and knows at the end which ones nobody took.
class builder {
 public:
  builder(loaded& to, const load_options& options, formats::q2_told q2)
      : to_(to), options_(options), q2_(q2), taken_(to.file.tensors().size(), false) {
    if (const auto type = to.file.metadata().integer("general.file_type")) file_type_ = *type;
  }

  [[nodiscard]] bool has(const std::string& name) const { return to_.file.find(name) != nullptr; }

  // A norm's factors or RoPE's divisors, delivered as F32.
  result<uint32_t> vector(const std::string& name, uint64_t k) {
    const auto from = take(name, k, 1);
    if (!from) return std::unexpected(from.error());
    return add(name, *from, formats::understand_vector(*from), 1);
  }

  // The factors of a short convolution: n for each of m columns, delivered as F32.
  result<uint32_t> factors(const std::string& name, uint64_t n, uint64_t m) {
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

  // A vector's numbers, where they are no weight by themselves.
  result<std::vector<float>> numbers(const std::string& name, uint64_t k) {
    const auto from = take(name, k, 1);
    if (!from) return std::unexpected(from.error());
    auto understood = formats::understand_vector(*from);
    if (!understood) return pass_on(std::move(understood), fmt::format("tensor {}", quote(name)));
    std::vector<float> out(k);
    formats::convert(*from, *understood, 0, std::as_writable_bytes(std::span(out)));
    to_.made_of.emplace_back(name, *from);
    return out;
  }

  // Lets the tensors of blocks [first, end) go.
  void skip_blocks(uint32_t first, uint32_t end) {
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

  // A matrix that may be ternary or dense.
  result<uint32_t> matrix(const std::string& name, uint64_t k, uint64_t m) {
    auto from = take(name, k, m);
    if (!from) return std::unexpected(from.error());
    from->scales = scales_of(name, k * m);
    return add(name, *from, formats::understand(*from), 2);
  }

  // A linear layer: a matrix whose scales are multiplied by <name>.scale if the file has it.
  result<uint32_t> linear(const std::string& name, uint64_t k, uint64_t m) {
    auto index = matrix(name + ".weight", k, m);
    const std::string scale_name = name + ".scale";
    // Already taken: not a factor, but the scales of blocks.
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
          fmt::format(
              "tensor {} scales {} of type {}; only ternary weights can have a scale tensor",
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

  // Numbers that follow from the metadata, or from tensors that are no weights by themselves.
  result<uint32_t> add_made(const std::string& name, std::vector<float> made, uint32_t n_rows = 1) {
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

  // What nobody took would be part of a different computation.
  [[nodiscard]] result<void> check_all_taken() const {
    const auto left = std::ranges::find(taken_, false);
    if (left == taken_.end()) return {};
    const auto& t = to_.file.tensors()[static_cast<size_t>(left - taken_.begin())].info;
    return fail(BITNET_UNSUPPORTED,
                fmt::format("tensor {} has no place in the graph of architecture {}; computing "
                            "without it would give wrong text",
                            quote(t.name), quote(to_.shape.architecture)));
  }

 private:
  [[nodiscard]] bool is_taken(const std::string& name) const {
    return taken_[static_cast<size_t>(to_.file.find(name) - to_.file.tensors().data())];
  }

  result<formats::source> take(const std::string& name, uint64_t k, uint64_t m) {
    const auto* found = to_.file.find(name);
    if (found == nullptr)
      return bad_data(fmt::format(
          "tensor {} is missing; the file is incomplete or of another architecture", quote(name)));
    taken_[static_cast<size_t>(found - to_.file.tensors().data())] = true;
    const gguf::tensor_info& t = found->info;
    if (t.ne != std::array<uint64_t, 4>{k, m, 1, 1})
      return bad_data(fmt::format("tensor {} has shape {}; the metadata asks for [{}{}]",
                                  quote(name), shape_text(t), k,
                                  m == 1 ? "" : fmt::format(", {}", m)));
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
                           .turns = found->turns};
  }

  // The scales that some forms keep in a tensor of their own: one, or one for 32 elements.
  formats::companion scales_of(const std::string& name, uint64_t n) {
    const auto stem = std::string_view(name).substr(0, name.rfind(".weight"));
    for (const std::string_view base : {std::string_view(name), stem})
      for (const char* suffix :
           {"_scale", ".scale", "_scales", ".scales", ".q_scales", ".d", ".qh"}) {
        const auto* found = to_.file.find(fmt::format("{}{}", base, suffix));
        if (found == nullptr) continue;
        const gguf::tensor_info& t = found->info;
        const bool whole = base == name && t.elements == 1;  // stem.scale of one is a factor
        if (!whole && (t.elements == 1 || t.elements != (n + 31) / 32)) continue;
        if (gguf::size_of(t.type).value_or(gguf::type_size{}).block != 1) continue;
        taken_[static_cast<size_t>(found - to_.file.tensors().data())] = true;
        return {.type = t.type, .elements = t.elements, .bytes = t.bytes};
      }
    return {};
  }

  static std::string shape_text(const gguf::tensor_info& t) {
    std::string out = "[";
    for (uint32_t d = 0; d < t.rank; ++d) out += fmt::format("{}{}", d == 0 ? "" : ", ", t.ne[d]);
    return out + "]";
  }

  result<uint32_t> add(const std::string& name, const formats::source& from,
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
    w.source_type = from.type;
    if (understood->verbatim &&
        reinterpret_cast<uintptr_t>(from.bytes.data()) % alias_alignment == 0)
      w.alias = from.bytes.first(w.data_bytes);
    to_.weights.push_back(std::move(w));
    to_.scale_factors.push_back(1);
    to_.sources.push_back(from);
    to_.readings.push_back(std::move(*understood));
    return static_cast<uint32_t>(to_.weights.size() - 1);
  }

  loaded& to_;
  const load_options& options_;
  formats::q2_told q2_;
  std::vector<bool> taken_;  // file.tensors(), same index
  std::optional<int64_t> file_type_;
};

// The factors of decays, which are below 0, and what is added before: one weight of two rows.
result<uint32_t> read_decays(builder& tensors, const std::string& block, const char* name,
                             uint64_t heads) {
  auto factors = tensors.numbers(block + "ssm_a", heads);
  if (!factors) return std::unexpected(factors.error());
  for (uint64_t i = 0; i < heads; ++i)
    if ((*factors)[i] > 0)
      return bad_data(
          fmt::format("tensor {}: element {} is above zero, so that a state would grow without "
                      "end; expected minus the exponential of A_log",
                      quote(block + "ssm_a"), i));
  const auto biases = tensors.numbers(block + "ssm_dt.bias", heads);
  if (!biases) return std::unexpected(biases.error());
  factors->insert(factors->end(), biases->begin(), biases->end());
  return tensors.add_made(block + name, std::move(*factors), 2);
}

// A matrix, and the norm of its input where the model has such.
result<uint32_t> read_matrix(loaded& to, builder& tensors, const std::string& name, const part& p) {
  const auto index = tensors.linear(name, p.k, p.m);
  if (!index || !to.shape.input_norms) return index;
  const auto norm = tensors.vector(name + "_norm_in.weight", p.k);
  if (!norm) return norm;
  to.weights[*index].input_norm = *norm;
  return index;
}

result<uint32_t> read_part(loaded& to, builder& tensors, const std::string& block, const part& p) {
  const std::string name = block + p.name;
  switch (p.kind) {
    case part_kind::norm:
      return tensors.vector(name + ".weight", p.k);
    case part_kind::convolution:
      return tensors.factors(name + ".weight", p.k, p.m);
    case part_kind::decays:
      return read_decays(tensors, block, p.name, p.k);
    case part_kind::matrix:
      break;
  }
  return read_matrix(to, tensors, name, p);
}

bool has_input_norms(const gguf::file& file) {
  return std::ranges::any_of(file.tensors(), [](const auto& t) {
    return t.info.name.starts_with("blk.") && t.info.name.ends_with("_norm_in.weight");
  });
}

result<void> read_layers(loaded& to, builder& tensors) {
  const hyperparameters& h = to.shape;
  uint64_t fewest = to.file.tensors().size() + 1;  // of any layer
  for (uint32_t n = 0; n < h.n_layers; ++n)
    fewest = std::min<uint64_t>(fewest, h.row->parts(h, n).size());
  if (h.n_layers > to.file.tensors().size() / fewest)
    return bad_data(
        fmt::format("the metadata asks for {} layers of {} tensors, the file has {} tensors in all",
                    h.n_layers, fewest, to.file.tensors().size()));
  for (uint32_t n = 0; n < h.n_layers; ++n) {
    layer l{};
    const std::string block = fmt::format("blk.{}.", n);
    for (const part& p : h.row->parts(h, n)) {
      const auto index = read_part(to, tensors, block, p);
      if (!index) return std::unexpected(index.error());
      l.*p.index = *index;
    }
    to.layers.push_back(l);
  }
  if (h.n_skipped != 0) tensors.skip_blocks(h.n_layers, h.n_layers + h.n_skipped);
  return {};
}

result<void> read_ends(loaded& to, builder& tensors) {
  const uint64_t embedding = to.shape.n_embedding;
  const auto take = [](result<uint32_t> from, uint32_t& index) -> result<void> {
    if (!from) return std::unexpected(from.error());
    index = *from;
    return {};
  };
  auto ok =
      take(tensors.matrix("token_embd.weight", embedding, to.shape.n_vocab), to.token_embedding);
  if (ok) ok = take(tensors.vector("output_norm.weight", embedding), to.output_norm);
  to.output = to.token_embedding;
  if (ok && tensors.has("output.weight"))
    ok = take(tensors.matrix("output.weight", embedding, to.shape.n_vocab), to.output);
  return ok;
}

// Weights with scales of groups were made of a model that computed with floats, unless its
// architecture is known for what it was trained on.
uint32_t wanted_group(const loaded& m, activations choice) {
  switch (choice) {
    case activations::row:
    case activations::floats:
      return 0;
    case activations::group32:
      return 32;
    case activations::group64:
      return 64;
    case activations::group128:
      return 128;
    case activations::automatic:
      break;
  }
  const bool grouped = std::ranges::any_of(m.weights, [](const weight& w) {
    return w.scale_group != 0 && w.scale_group < static_cast<uint64_t>(w.ne[0]);
  });
  if (!grouped || m.shape.trained_on_i8) return 0;
  // A rotation spreads what stands out over its block: longer groups lose little.
  const bool rotated =
      std::ranges::any_of(m.weights, [](const weight& w) { return w.of_input.block != 0; });
  return rotated ? 128 : 32;
}

// Divisors are above zero, whoever made them.
result<void> check_divisors(const loaded& m, uint32_t index) {
  const formats::source& from = m.sources[index];
  std::vector<std::byte> as_f32(m.weights[index].data_bytes);
  auto ok =
      stream(m, index, [&](uint64_t offset, std::span<const std::byte> bytes) -> result<void> {
        std::ranges::copy(bytes, as_f32.begin() + static_cast<ptrdiff_t>(offset));
        return {};
      });
  for (uint64_t i = 0; ok && i < from.k; ++i)
    if (!(gguf::load<float>(std::span(as_f32).subspan(4 * i)) > 0))
      return bad_data(
          fmt::format("tensor {}: element {} is not above zero", quote(m.weights[index].name), i));
  return ok;
}

result<void> read_divisors(loaded& to, builder& tensors) {
  const uint64_t pairs = to.shape.rope_dims / 2;
  const auto take = [&](const char* name, uint32_t& index) -> result<void> {
    const auto taken = tensors.vector(name, pairs);
    if (!taken) return std::unexpected(taken.error());
    index = *taken;
    return check_divisors(to, index);
  };
  const rope_scaling& how = to.shape.rope_scaling;
  const bool has_one = tensors.has("rope_freqs.weight");
  if (has_one && (how.kind == stretch::yarn || how.kind == stretch::longrope))
    return fail(BITNET_UNSUPPORTED,
                "tensor 'rope_freqs.weight' stretches RoPE's waves, and so does "
                "rope.scaling.type; this program applies one of them");
  if (has_one) return take("rope_freqs.weight", to.rope_divisors);
  if (how.kind == stretch::longrope) {
    auto ok = take("rope_factors_short.weight", to.rope_divisors);
    return ok ? take("rope_factors_long.weight", to.rope_divisors_long) : ok;
  }
  if (how.kind != stretch::yarn) return {};
  const auto made = tensors.add_made("rope_freqs.weight",
                                     yarn_divisors(how, to.shape.rope_base, to.shape.rope_dims));
  if (!made) return std::unexpected(made.error());
  to.rope_divisors = *made;
  return check_divisors(to, *made);
}

// The factors of each width, as weights that are in no file.
result<std::vector<transform>> read_signs(const hadamard& h, builder& tensors) {
  std::vector<transform> out;  // of h.widths, same index
  for (const hadamard::width& w : h.widths) {
    const auto made = tensors.add_made(fmt::format("prism.hadamard.signs.{}", w.columns),
                                       {w.signs.begin(), w.signs.end()});
    if (!made) return std::unexpected(made.error());
    out.push_back({h.block, *made});
  }
  return out;
}

// Matrices of linear layers, and the embedding, learn what they were rotated by.
result<void> read_rotation(loaded& to, const hadamard& h, builder& tensors) {
  const auto of_widths = read_signs(h, tensors);
  if (!of_widths) return std::unexpected(of_widths.error());
  const auto undone_by = [&](const weight& w) {
    const auto columns = static_cast<uint64_t>(w.ne[0]);
    const auto width = std::ranges::find(h.widths, columns, &hadamard::width::columns);
    return width == h.widths.end() ? transform{h.block, no_weight}
                                   : (*of_widths)[static_cast<size_t>(width - h.widths.begin())];
  };
  std::unordered_map<std::string_view, uint32_t> by_name;  // the file may name millions
  for (uint32_t i = 0; i < to.weights.size(); ++i) by_name.emplace(to.weights[i].name, i);
  const auto index_of = [&](const std::string& name) {
    auto found = by_name.find(name);
    if (found == by_name.end()) found = by_name.find(name + ".weight");
    return found == by_name.end() ? no_weight : found->second;
  };
  const auto refused = [](const std::string& name, const char* as) {
    return fail(BITNET_UNSUPPORTED,
                fmt::format("metadata says that tensor {} is rotated as {}; this program knows "
                            "rotated matrices of linear layers and a rotated embedding",
                            quote(name), as));
  };
  std::vector<uint32_t> linear = {to.output};
  for (uint32_t n = 0; n < to.shape.n_layers; ++n)
    for (const part& p : to.shape.row->parts(to.shape, n))
      if (p.kind == part_kind::matrix) linear.push_back(to.layers[n].*p.index);
  std::ranges::sort(linear);
  to.shape.recurrence.regrouped = h.heads_are_grouped;
  for (const std::string& name : h.weights) {
    const uint32_t index = index_of(name);
    if (!std::ranges::binary_search(linear, index)) return refused(name, "a matrix");
    if (to.weights[index].input_norm != no_weight)
      return refused(name, "a matrix, and has a norm of its input");
    to.weights[index].of_input = undone_by(to.weights[index]);
  }
  for (const std::string& name : h.tables) {
    if (index_of(name) != to.token_embedding) return refused(name, "an embedding");
    to.embedding_transform = undone_by(to.weights[to.token_embedding]);
    // What is looked up is H of a row, and the head multiplies by the same rows.
    if (to.output == to.token_embedding) to.weights[to.output].of_input = to.embedding_transform;
  }
  return {};
}

// What reads activations as they are is a dense matrix.
void make_dense(loaded& m) {
  for (std::size_t i = 0; i < m.weights.size(); ++i) {
    weight& w = m.weights[i];
    if (w.format != BITNET_FORMAT_TERNARY2) continue;
    formats::reading& r = m.readings[i];
    r.scales = std::exchange(w.scales, {});
    r = formats::as_dense(m.sources[i], std::move(r));
    w.format = r.format;
    w.data_bytes = r.data_bytes;
    w.scale_group = 0;
    w.alias = {};
  }
}

// Of groups of 128 only: the scale stands behind the codes.
bool says_scale_is_last(const gguf::container& metadata) {
  const auto version = metadata.text("general.quantization_version").value_or(std::nullopt);
  return metadata.find("oxibonsai.quant_format") != nullptr ||
         version == std::string_view("TQ2_0_G128");
}

}  // namespace

result<std::optional<formats::q2_told>> tell_q2(const gguf::file& file) {
  std::vector<formats::q2_tensor> all;
  for (const auto& t : file.tensors())
    if (t.info.type == gguf::type::q2_0)
      all.push_back({.name = t.info.name,
                     .k = t.info.ne[0],
                     .elements = t.info.elements,
                     .bytes = t.info.bytes,
                     .alignment = file.containers()[t.shard].alignment()});
  if (all.empty()) return std::nullopt;
  const auto told = formats::tell_q2_layout(all, says_scale_is_last(file.metadata()));
  if (!told) return std::unexpected(told.error());
  return *told;
}

result<loaded> read(gguf::file file, const load_options& options) {
  loaded m{.file = std::move(file)};
  auto vocabulary = read_vocabulary(m.file.metadata());
  if (!vocabulary) return std::unexpected(vocabulary.error());
  m.vocabulary = std::move(*vocabulary);

  auto shape = read_hyperparameters(m.file.metadata(), m.vocabulary.tokens.size(), options,
                                    has_input_norms(m.file));
  if (options.vocabulary_only) {
    // Such files may carry nothing else; what they do carry is worth telling.
    if (shape) m.shape = std::move(*shape);
    m.shape.architecture = m.vocabulary.architecture;
    m.shape.n_vocab = static_cast<uint32_t>(m.vocabulary.tokens.size());
    return m;
  }
  if (m.file.tensors().empty())
    return bad_data("the file has a vocabulary but no weights; name the file of the whole model");
  if (!shape) return std::unexpected(shape.error());
  m.shape = std::move(*shape);

  const auto found = read_hadamard(m.file);
  if (!found) return std::unexpected(found.error());
  const std::optional<hadamard>& rotated = *found;
  const auto q2 = tell_q2(m.file);
  if (!q2) return std::unexpected(q2.error());

  builder tensors(m, options, q2->value_or(formats::q2_told{}));
  auto ok = read_ends(m, tensors);
  if (ok) ok = read_divisors(m, tensors);
  if (ok) ok = read_layers(m, tensors);
  if (ok && rotated) ok = read_rotation(m, *rotated, tensors);
  if (ok) ok = tensors.check_all_taken();
  if (ok) ok = m.file.check_size();
  if (!ok) return std::unexpected(ok.error());
  m.shape.activation_group = wanted_group(m, options.activations);
  if (options.activations == activations::floats) make_dense(m);
  return m;
}

result<void> recall_scales(loaded& m) {
  for (size_t i = 0; i < m.weights.size(); ++i) {
    weight& w = m.weights[i];
    if (w.format != BITNET_FORMAT_TERNARY2) continue;
    auto again = formats::understand(m.sources[i]);
    if (!again) return pass_on(std::move(again), fmt::format("tensor {}", quote(w.name)));
    w.scales = std::move(again->scales);
    if (m.scale_factors[i] == 1) continue;
    for (float& s : w.scales) s *= m.scale_factors[i];
  }
  return m.file.check_size();
}

result<void> stream(const loaded& from, uint32_t index, const model::sink& to) {
  if (index >= from.weights.size())
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("weight {} of {}", index, from.weights.size()));
  if (auto ok = from.file.check_size(); !ok) return ok;
  const weight& w = from.weights[index];
  const formats::source& source = from.sources[index];
  const formats::reading& reading = from.readings[index];
  std::vector<std::byte> piece;  // own memory per call: callers may be on several threads
  if (!reading.verbatim) piece.resize(std::min(largest_piece, w.data_bytes));
  for (uint64_t offset = 0; offset < w.data_bytes;) {
    const uint64_t size = std::min(largest_piece, w.data_bytes - offset);
    std::span<const std::byte> bytes;
    if (reading.verbatim) {
      bytes = source.bytes.subspan(offset, size);
    } else {
      const auto out = std::span(piece).first(size);
      formats::convert(source, reading, offset, out);
      bytes = out;
    }
    if (auto ok = to(offset, bytes); !ok) return ok;
    offset += size;
  }
  return {};
}

}  // namespace bitnet::model
