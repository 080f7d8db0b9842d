#include "model/read.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "gguf/bytes.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"
#include "model/architectures/architecture.hpp"
#include "model/weight_builder.hpp"

namespace bitnet::model {
namespace {

using gguf::quote;

constexpr uint64_t largest_piece = uint64_t{4} << 20;  // bytes, of model::stream_weight

// One weight of two rows: factors of the decays, which are negative, and what is added before.
result<uint32_t> read_decays(weight_builder& tensors, const std::string& block, const char* name,
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

// Reads a matrix and, if the model has it, the norm of its input.
result<uint32_t> read_matrix(loaded& to, weight_builder& tensors, const std::string& name,
                             const layer_weight& p) {
  const auto index = tensors.linear(name, p.k, p.m);
  if (!index || !to.shape.input_norms) return index;
  const auto norm = tensors.vector(name + "_norm_in.weight", p.k);
  if (!norm) return norm;
  to.weights[*index].input_norm = *norm;
  return index;
}

result<uint32_t> read_layer_weight(loaded& to, weight_builder& tensors, const std::string& block,
                                   const layer_weight& p) {
  const std::string name = block + p.name;
  switch (p.kind) {
    case weight_kind::norm:
      return tensors.vector(name + ".weight", p.k);
    case weight_kind::convolution:
      return tensors.factors(name + ".weight", p.k, p.m);
    case weight_kind::decays:
      return read_decays(tensors, block, p.name, p.k);
    case weight_kind::matrix:
      break;
  }
  return read_matrix(to, tensors, name, p);
}

bool has_input_norms(const gguf::file& file) {
  return std::ranges::any_of(file.tensors(), [](const auto& t) {
    return t.info.name.starts_with("blk.") && t.info.name.ends_with("_norm_in.weight");
  });
}

result<void> read_layers(loaded& to, weight_builder& tensors) {
  const hyperparameters& shape = to.shape;
  uint64_t fewest = to.file.tensors().size() + 1;  // least number of any layer
  for (uint32_t n = 0; n < shape.n_layers; ++n)
    fewest = std::min<uint64_t>(fewest, shape.arch->weights(shape, n).size());
  if (shape.n_layers > to.file.tensors().size() / fewest)
    return bad_data(
        fmt::format("the metadata asks for {} layers of {} tensors, the file has {} tensors in all",
                    shape.n_layers, fewest, to.file.tensors().size()));
  for (uint32_t n = 0; n < shape.n_layers; ++n) {
    layer l{};
    const std::string block = fmt::format("blk.{}.", n);
    for (const layer_weight& p : shape.arch->weights(shape, n)) {
      const auto index = read_layer_weight(to, tensors, block, p);
      if (!index) return std::unexpected(index.error());
      l.*p.index = *index;
    }
    to.layers.push_back(l);
  }
  if (shape.n_skipped != 0) tensors.skip_blocks(shape.n_layers, shape.n_layers + shape.n_skipped);
  return {};
}

result<void> read_ends(loaded& to, weight_builder& tensors) {
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

// Weights with scales of groups come from a model that computed with floats, unless its
// architecture is known to have been trained with int8.
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
  // A rotation spreads outliers over its block, so longer groups lose little.
  const bool rotated =
      std::ranges::any_of(m.weights, [](const weight& w) { return w.of_input.block != 0; });
  return rotated ? 128 : 32;
}

// Rejects divisors that are not above zero.
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

result<void> read_divisors(loaded& to, weight_builder& tensors) {
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

// Adds the signs of each width as weights that no file has.
result<std::vector<transform>> read_signs(const hadamard& form, weight_builder& tensors) {
  std::vector<transform> out;  // one per h.widths
  for (const hadamard::width& w : form.widths) {
    const auto made = tensors.add_made(fmt::format("prism.hadamard.signs.{}", w.columns),
                                       {w.signs.begin(), w.signs.end()});
    if (!made) return std::unexpected(made.error());
    out.push_back({form.block, *made});
  }
  return out;
}

// Sets the rotation of linear layers and of the embedding.
result<void> read_rotation(loaded& to, const hadamard& form, weight_builder& tensors) {
  const auto of_widths = read_signs(form, tensors);
  if (!of_widths) return std::unexpected(of_widths.error());
  const auto undone_by = [&](const weight& w) {
    const auto columns = static_cast<uint64_t>(w.ne[0]);
    const auto width = std::ranges::find(form.widths, columns, &hadamard::width::columns);
    return width == form.widths.end()
               ? transform{form.block, no_weight}
               : (*of_widths)[static_cast<size_t>(width - form.widths.begin())];
  };
  std::unordered_map<std::string_view, uint32_t> by_name;  // the file may list millions
  for (uint32_t i = 0; i < to.weights.size(); ++i) by_name.emplace(to.weights[i].name, i);
  const auto index_of = [&](const std::string& name) {
    auto found = by_name.find(name);
    if (found == by_name.end()) found = by_name.find(name + ".weight");
    return found == by_name.end() ? no_weight : found->second;
  };
  const auto rejected = [](const std::string& name, const char* as) {
    return fail(BITNET_UNSUPPORTED,
                fmt::format("metadata says that tensor {} is rotated as {}; this program knows "
                            "rotated matrices of linear layers and a rotated embedding",
                            quote(name), as));
  };
  std::vector<uint32_t> linear = {to.output};
  for (uint32_t n = 0; n < to.shape.n_layers; ++n)
    for (const layer_weight& p : to.shape.arch->weights(to.shape, n))
      if (p.kind == weight_kind::matrix) linear.push_back(to.layers[n].*p.index);
  std::ranges::sort(linear);
  to.shape.recurrence.regrouped = form.heads_are_grouped;
  for (const std::string& name : form.weights) {
    const uint32_t index = index_of(name);
    if (!std::ranges::binary_search(linear, index)) return rejected(name, "a matrix");
    if (to.weights[index].input_norm != no_weight)
      return rejected(name, "a matrix, and has a norm of its input");
    to.weights[index].of_input = undone_by(to.weights[index]);
  }
  for (const std::string& name : form.tables) {
    if (index_of(name) != to.token_embedding) return rejected(name, "an embedding");
    to.embedding_transform = undone_by(to.weights[to.token_embedding]);
    // A looked-up row is rotated by H, and a tied head multiplies by the same rows.
    if (to.output == to.token_embedding) to.weights[to.output].of_input = to.embedding_transform;
  }
  return {};
}

// Makes a matrix that reads unquantised activations dense.
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

// For groups of 128: whether a key says that the scale is behind the codes.
bool says_scale_is_last(const gguf::container& metadata) {
  const auto version = metadata.text("general.quantization_version").value_or(std::nullopt);
  return metadata.find("oxibonsai.quant_format") != nullptr ||
         version == std::string_view("TQ2_0_G128");
}

}  // namespace

result<std::optional<formats::q2_finding>> find_q2(const gguf::file& file) {
  std::vector<formats::q2_tensor> all;
  for (const auto& t : file.tensors())
    if (t.info.type == gguf::type::q2_0)
      all.push_back({.name = t.info.name,
                     .k = t.info.ne[0],
                     .elements = t.info.elements,
                     .bytes = t.info.bytes,
                     .alignment = file.containers()[t.shard].alignment()});
  if (all.empty()) return std::nullopt;
  const auto found = formats::find_q2_layout(all, says_scale_is_last(file.metadata()));
  if (!found) return std::unexpected(found.error());
  return *found;
}

std::string ignored_of(const loaded& m) {
  if (m.n_skipped != 0)
    return fmt::format("{} tensors behind the {} layers, which predict further tokens", m.n_skipped,
                       m.shape.n_layers);
  const std::span<const std::string> names = m.file.passed_over();
  if (names.empty()) return "";
  return fmt::format("{} tensors that predict further tokens or see images, {} to {}", names.size(),
                     gguf::quote(names.front()), gguf::quote(names.back()));
}

// In a GGUF these are the blocks behind its layers that predict further tokens; no other tensor of
// a readable file has such a name.
std::vector<std::string> left_out_of(const loaded& m) {
  const std::span<const std::string> passed_over = m.file.passed_over();
  std::vector<std::string> out(passed_over.begin(), passed_over.end());
  const uint32_t first = m.shape.n_layers;
  for (uint32_t block = first; block < first + m.shape.n_skipped; ++block) {
    const std::string beginning = fmt::format("blk.{}.", block);
    for (const auto& t : m.file.tensors())
      if (t.info.name.starts_with(beginning)) out.emplace_back(t.info.name);
  }
  for (const gguf::left_out_member& one : m.file.left_out()) out.push_back(gguf::name_of(one));
  return out;
}

nlohmann::ordered_json left_out_members(const loaded& m) {
  auto out = nlohmann::ordered_json::array();
  for (const gguf::left_out_member& one : m.file.left_out()) {
    nlohmann::ordered_json row = {{"file", one.file}};
    if (!one.member.empty()) row["member"] = one.member;
    row["why"] = one.why;
    out.push_back(std::move(row));
  }
  return out;
}

result<loaded> read(gguf::file file, const load_options& options) {
  loaded m{.file = std::move(file)};
  auto vocabulary = read_vocabulary(m.file.metadata());
  if (!vocabulary) return std::unexpected(vocabulary.error());
  m.vocabulary = std::move(*vocabulary);

  auto shape = read_hyperparameters(m.file.metadata(), m.vocabulary.tokens.size(), options,
                                    has_input_norms(m.file));
  if (options.vocabulary_only) {
    // Such files may have only a vocabulary; report what they have.
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
  const auto q2 = find_q2(m.file);
  if (!q2) return std::unexpected(q2.error());

  weight_builder tensors(m, options, q2->value_or(formats::q2_finding{}));
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
    if (w.scale_group != 0) m.file.give_back(m.sources[i].bytes);
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
  std::vector<std::byte> piece;  // own buffer per call, since several threads may call
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
