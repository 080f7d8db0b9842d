#include "convert/plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>

#include "base/dense_formats.hpp"
#include "formats/fit.hpp"
#include "formats/ternary.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"

namespace bitnet::convert {
namespace {

using gguf::quote;

template <class Targets>
std::string names_of(Targets targets) {
  std::string out;
  for (const auto& t : targets) out += fmt::format("{}{}", out.empty() ? "" : ", ", t.name);
  return out;
}

// At most one is set; none: the tensor is copied.
struct target {
  const formats::ternary_target* ternary = nullptr;
  const formats::dense_target* dense = nullptr;

  [[nodiscard]] bool is_none() const { return ternary == nullptr && dense == nullptr; }
};

target target_named(std::string_view name) {
  return {formats::find_ternary_target(name), formats::find_dense_target(name)};
}

struct wanted {
  target linear, embedding, output;
};

bool has_scales_of_groups(const formats::ternary_target& t) {
  return t.float_group != 0;
}

result<wanted> find_targets(const options& how, std::string_view linear) {
  wanted w;
  w.linear = target_named(linear);
  if (w.linear.is_none())
    return fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("there is no type {} to write; choose one of {}, {}", quote(linear),
                    names_of(formats::ternary_targets()), names_of(formats::dense_targets())));
  for (const auto& [name, to] :
       {std::pair{&how.embedding_type, &w.embedding}, std::pair{&how.output_type, &w.output}}) {
    if (name->empty()) continue;
    *to = target_named(*name);
    if (to->is_none() || (to->ternary != nullptr && !has_scales_of_groups(*to->ternary)))
      return fail(
          BITNET_INVALID_ARGUMENT,
          fmt::format(
              "an embedding or output head cannot be written as {}; choose one of {}, {}",
              quote(*name),
              names_of(std::views::filter(formats::ternary_targets(), has_scales_of_groups)),
              names_of(formats::dense_targets())));
  }
  return w;
}

bool is_float(uint32_t type) {
  return type == gguf::type::f32 || type == gguf::type::f16 || type == gguf::type::bf16;
}

// Types that are kept by default: small ones, and F16.
bool is_kept(uint32_t type) {
  if (type == gguf::type::f16) return true;
#define BITNET_DENSE_KEPT(name, id, scale, ...) \
  if ((scale) >= 0 && type == gguf::type::name) return true;
  BITNET_DENSE_FORMATS(BITNET_DENSE_KEPT)
#undef BITNET_DENSE_KEPT
  return false;
}

void hand_codes(job& j, const model::weight& w) {
  j.weights.scales = w.scales;
  j.weights.scale_group = w.scale_group;
  j.weights.codes = [&j](uint64_t row, uint64_t column, std::span<uint8_t> out) {
    formats::read_codes(j.source, j.reading, row, column, out);
  };
}

// The dense type that the reading gives: the source's, unless a source with values that no ternary
// format holds became a dense one.
uint32_t given_type(const job& j) {
#define BITNET_DENSE_TYPE(name, id, ...) \
  if (j.reading.format == BITNET_FORMAT_##id) return gguf::type::name;
  BITNET_DENSE_FORMATS(BITNET_DENSE_TYPE)
#undef BITNET_DENSE_TYPE
  return j.source.type;
}

// Plans a linear layer as ternary: it is ternary, or made so.
result<void> plan_ternary(job& j, const model::weight& w) {
  if (w.format != BITNET_FORMAT_TERNARY2) {
    const uint32_t type = j.source.type;
    if (given_type(j) != type)
      return fail(BITNET_UNSUPPORTED,
                  "holds values of twice its scale, so it is not ternary; choose q8_0, f16 or f32");
    if (!is_float(type))
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("has type {}, which has lost what ternary weights are made of; start "
                              "from F32, F16 or BF16",
                              gguf::type_name(type)));
    // Weights that are ternary in groups keep their scales; a type without such scales fails.
    if (!j.found) j.found = j.keeps_groups ? formats::ternary_already(j.source).value_or(0) : 0;
    const uint64_t group = *j.found != 0 ? *j.found : j.ternary->float_group;
    auto made = group != 0 ? formats::ternarise_groups(j.source, group)
                           : formats::ternarise(j.source, formats::rounding::exact_or_absmean);
    if (!made) return std::unexpected(made.error());
    j.reading = std::move(*made);
    j.weights.scales = j.reading.scales;
    j.weights.scale_group = j.reading.scale_group;
    j.weights.codes = [&j](uint64_t row, uint64_t column, std::span<uint8_t> out) {
      formats::read_codes(j.source, j.reading, row, column, out);
    };
  }
  const auto bytes = j.ternary->bytes(j.weights);
  if (!bytes) return std::unexpected(bytes.error());
  j.written.type = j.ternary->type;
  j.written.bytes = *bytes;
  return {};
}

result<void> plan_dense(job& j) {
  const formats::dense_target& to = *j.dense;
  const auto size = gguf::size_of(to.type).value_or(gguf::type_size{1, 1});
  if (j.source.k % to.block != 0)
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("has rows of {} elements; {} needs a multiple of {}: choose another type",
                    j.source.k, to.name, to.block));
  j.written.type = to.type;
  j.written.bytes = j.source.k / size.block * size.bytes * j.source.m;
  return {};
}

bool same_type(const job& j) {
  return j.dense != nullptr && j.dense->type == j.source.type && !formats::is_rearranged(j.source);
}

// These few rows decide how long states last: ternary values would be too coarse, and smaller types
// save nothing.
bool stays_float(const model::weight& w) {
  return w.format != BITNET_FORMAT_TERNARY2 &&
         (w.name.ends_with(".ssm_alpha.weight") || w.name.ends_with(".ssm_beta.weight"));
}

// The target for the weight's own type.
const formats::dense_target* target_of(uint32_t type) {
  const auto all = formats::dense_targets();
  const auto found = std::ranges::find(all, type, &formats::dense_target::type);
  return found == all.end() ? nullptr : &*found;
}

// Plans an embedding or head without a requested type: F16, unless its numbers need their own type.
result<void> plan_float_table(job& j) {
  const formats::dense_target* usual = formats::find_dense_target("f16");
  formats::fit all;
  std::vector<float> numbers(j.source.k);
  for (uint64_t r = 0; r < j.source.m; ++r) {
    read_row(j, r, 0, numbers);
    all.join(formats::try_out(*usual, numbers, r * j.source.k));
  }
  auto fits = formats::judge(all, usual->name, usual->most_error, j.source.k);
  if (fits) {
    j.dense = usual;
    return {};
  }
  if (fits.error().status != BITNET_UNSUPPORTED) return fits;
  j.dense = target_of(j.source.type);
  j.kept = fmt::format("as f16 {}", fits.error().message);
  return {};
}

result<void> plan_vector(job& j, const std::string& name, const formats::source& from) {
  j.index = model::no_weight;
  j.source = from;
  j.weights.k = from.k;
  j.weights.m = 1;
  j.written.name = name;
  j.written.ne = {from.k};
  j.dense = formats::find_dense_target("f32");
  return plan_dense(j);
}

result<void> plan_weight(job& j, const model::loaded& from, const wanted& w) {
  const model::weight& weight = from.weights[j.index];
  j.source = from.sources[j.index];
  j.reading = from.readings[j.index];
  j.weights.k = j.source.k;
  j.weights.m = j.source.m;
  if (weight.format == BITNET_FORMAT_TERNARY2) hand_codes(j, weight);
  j.written.name = weight.name;
  j.written.ne = {j.source.k};
  if (weight.rank == 2) j.written.ne.push_back(j.source.m);
  const bool is_embedding = j.index == from.token_embedding;
  const bool is_output = j.index == from.output;  // also the embedding, if tied
  const bool is_convolution = weight.rank == 2 && j.source.m != static_cast<uint64_t>(weight.ne[1]);
  if (is_convolution)
    j.written.ne = {static_cast<uint64_t>(weight.ne[0]), static_cast<uint64_t>(weight.ne[1])};
  if (weight.rank == 1 || is_convolution) {
    j.dense = formats::find_dense_target("f32");
  } else if (is_embedding || is_output) {
    target asked = is_output && !w.output.is_none() ? w.output : w.embedding;
    if (is_output && !is_embedding) asked = w.output;
    j.ternary = asked.ternary;
    j.dense = asked.dense;
    // A ternary head reads quantised activations; a float head would answer differently.
    if (asked.is_none() && weight.format == BITNET_FORMAT_TERNARY2) j.ternary = w.linear.ternary;
    if (asked.is_none() && j.ternary == nullptr && !is_kept(j.source.type))
      if (auto ok = plan_float_table(j); !ok) return ok;
  } else if (w.linear.ternary != nullptr && stays_float(weight)) {
    j.dense = target_of(j.source.type);
  } else {
    j.ternary = w.linear.ternary;
    j.dense = w.linear.dense;
  }
  if (same_type(j)) j.dense = nullptr;
  if (j.ternary != nullptr) return plan_ternary(j, weight);
  if (j.dense != nullptr) return plan_dense(j);
  j.written.type = j.source.type;
  j.written.bytes = j.source.bytes.size();
  return {};
}

bool is_linear(const model::loaded& from, uint32_t i) {
  const model::weight& w = from.weights[i];
  const bool is_matrix = w.rank == 2 && from.sources[i].m == static_cast<uint64_t>(w.ne[1]);
  return is_matrix && i != from.token_embedding && i != from.output && !stays_float(w);
}

// The type that can hold the scales of the linear layers. The findings on floats are stored, since
// the search reads all of them.
std::string_view fitting_type(const model::loaded& from, plan& p, workers& by) {
  std::vector<uint64_t> groups(p.jobs.size());
  by.each(groups.size(), [&](size_t n) {
    job& j = *p.jobs[n];
    if (!is_linear(from, j.index)) return;
    const model::weight& w = from.weights[j.index];
    if (w.format == BITNET_FORMAT_TERNARY2) {
      groups[n] = w.scale_group;
    } else if (is_float(from.sources[j.index].type)) {
      groups[n] = formats::ternary_already(from.sources[j.index]).value_or(0);
      if (j.keeps_groups) j.found = groups[n];
    }
  });
  const auto has = [&](uint64_t elements) {
    return std::ranges::find(groups, elements) != groups.end();
  };
  return has(64) ? "q2_0" : has(128) ? "pq2_0" : "i2_s";
}

}  // namespace

result<plan> make_plan(const model::loaded& from, const options& how, workers& by) {
  plan p;
  for (uint32_t i = 0; i < from.weights.size(); ++i) {
    if (from.is_made(i)) continue;
    p.jobs.push_back(std::make_unique<job>());
    p.jobs.back()->index = i;
    p.jobs.back()->keeps_groups = !how.lossy;
  }
  const auto w =
      find_targets(how, how.type ? std::string_view(*how.type) : fitting_type(from, p, by));
  if (!w) return std::unexpected(w.error());
  // On all threads: making floats ternary reads each of them.
  std::vector<result<void>> planned(p.jobs.size());
  by.each(p.jobs.size(), [&](size_t i) { planned[i] = plan_weight(*p.jobs[i], from, *w); });
  for (size_t i = 0; i < p.jobs.size(); ++i) {
    if (!planned[i])
      return pass_on(std::move(planned[i]),
                     fmt::format("tensor {}", quote(from.weights[p.jobs[i]->index].name)));
  }
  for (const auto& [name, source] : from.made_of) {
    p.jobs.push_back(std::make_unique<job>());
    if (auto ok = plan_vector(*p.jobs.back(), name, source); !ok)
      return pass_on(std::move(ok), fmt::format("tensor {}", quote(name)));
  }
  for (const auto& j : p.jobs) p.bytes += j->written.bytes;
  p.left_out = model::left_out_of(from);
  p.left_out_members = model::left_out_members(from);
  const gguf::container& metadata = from.file.metadata();
  for (const gguf::entry& e : metadata.entries()) {
    const bool ours = e.key == "general.file_type" || e.key == "general.quantization_version" ||
                      e.key == "general.alignment" || e.key.starts_with("split.") ||
                      e.key == "oxibonsai.quant_format";  // it names the former type
    // Blocks that predict further tokens are not part of this model and not written.
    const bool counts_blocks =
        from.shape.n_skipped != 0 &&
        (e.key.ends_with(".block_count") || e.key.ends_with(".nextn_predict_layers"));
    if (counts_blocks && e.key.ends_with(".block_count"))
      p.metadata.u32(e.key, from.shape.n_layers);
    if (!ours && !counts_blocks) p.metadata.copy(e.key, e.content);
  }
  const int64_t type =
      w->linear.ternary != nullptr ? w->linear.ternary->file_type : w->linear.dense->file_type;
  p.metadata.u32("general.file_type", static_cast<uint32_t>(type));
  constexpr uint32_t quantization_version = 2;  // version of ggml's block types
  p.metadata.u32("general.quantization_version", quantization_version);
  return p;
}

void read_row(const job& j, uint64_t row, uint64_t first, std::span<float> out) {
  if (!j.weights.codes && given_type(j) != j.source.type) {
    const auto size = gguf::size_of(given_type(j)).value_or(gguf::type_size{1, 1});
    std::vector<std::byte> given(out.size() / size.block * size.bytes);
    j.reading.bytes(j.source, (row * j.source.k + first) / size.block * size.bytes, given);
    formats::read_dense(given_type(j), given, 0, out);
    return;
  }
  if (!j.weights.codes) {
    const uint64_t start = formats::stored_row(j.source, row) * j.source.k;
    for (uint64_t done = 0; done < out.size();) {
      const uint64_t n =
          std::min(formats::columns_together(j.source, first + done), out.size() - done);
      formats::read_dense(j.source.type, j.source.bytes,
                          start + formats::stored_column(j.source, first + done),
                          out.subspan(done, n));
      done += n;
    }
    return;
  }
  std::array<uint8_t, formats::group> codes{};
  for (uint64_t c = 0; c < out.size(); c += formats::group) {
    const uint64_t n = std::min(formats::group, out.size() - c);
    j.weights.codes(row, first + c, std::span(codes).first(n));
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t element = row * j.source.k + first + c + i;
      const float scale =
          j.weights.scales[j.weights.scale_group == 0 ? 0 : element / j.weights.scale_group];
      out[c + i] = static_cast<float>(static_cast<int>(codes[i]) - 1) * scale;
    }
  }
}

}  // namespace bitnet::convert
