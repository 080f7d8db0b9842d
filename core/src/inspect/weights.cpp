#include "inspect/weights.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <vector>

#include "base/for_each_part.hpp"
#include "bitnet/bitnet.h"
#include "formats/reading.hpp"
#include "gguf/bytes.hpp"
#include "gguf/types.hpp"
#include "inspect/weight_rules.hpp"
#include "model/read.hpp"

namespace bitnet::inspect {
namespace {

using json = nlohmann::ordered_json;

constexpr uint64_t part_elements = uint64_t{1} << 18;  // elements per task of a thread

// Scales of I2_S. The mean magnitude is at least 1e-5 when weights are made ternary, and the
// largest scale of published models is below 10.
constexpr bounds scales{1e-5, 1e3};
// A normal distribution has 0.31 of its weights below half of its mean magnitude.
constexpr bounds zero_fractions{0.05, 0.95};

struct tally {
  uint64_t checked = 0, suspicious = 0;
  json tensors = json::array();
};

bool is_within(double value, const bounds& of) {
  return value >= of.lowest && value <= of.highest;  // false for NaN
}

// A JSON number; NaN and infinity become texts.
json shown(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::string beyond(const char* what, double value, const bounds& of) {
  return fmt::format("{} {:.6g} is outside of {:g} to {:g}", what, value, of.lowest, of.highest);
}

bool is_real(uint32_t type) {
  return type == gguf::type::f32 || type == gguf::type::f16 || type == gguf::type::bf16;
}

// The root mean square; partial sums are added in order, so it is the same on any machine.
double rms_of(const gguf::tensor_info& t) {
  std::vector<double> sums((t.elements + part_elements - 1) / part_elements);
  base::for_each_part(sums.size(), [&](uint64_t part) {
    const uint64_t end = std::min(t.elements, (part + 1) * part_elements);
    double sum = 0;
    for (uint64_t i = part * part_elements; i < end; ++i) {
      const double x = formats::real_element(t.type, t.bytes, i);
      sum += x * x;
    }
    sums[part] = sum;
  });
  const double all = std::accumulate(sums.begin(), sums.end(), 0.0);
  return std::sqrt(all / static_cast<double>(t.elements));
}

bool has_all_elements(const gguf::tensor_info& t) {
  const uint64_t bytes = t.type == gguf::type::f32 ? 4 : 2;
  return t.elements != 0 && t.bytes.size() / bytes >= t.elements;
}

void add(json row, const std::vector<std::string>& faults, tally& to) {
  ++to.checked;
  row["status"] = faults.empty() ? "ok" : "suspicious";
  if (!faults.empty()) {
    ++to.suspicious;
    row["why"] = faults;
  }
  to.tensors.push_back(std::move(row));
}

json row_of(const gguf::tensor_info& t, const char* kind) {
  return {{"name", std::string(t.name)}, {"kind", kind}, {"type", gguf::short_name(t.type)}};
}

void check_rms(const gguf::tensor_info& t, const char* kind, const std::optional<bounds>& rule,
               tally& to) {
  if (!is_real(t.type) || !has_all_elements(t)) return;
  const double rms = rms_of(t);
  json row = row_of(t, kind);
  row["rms"] = shown(rms);
  std::vector<std::string> faults;
  if (!std::isfinite(rms))
    faults.emplace_back("it holds what is no finite number");
  else if (rule && !is_within(rms, *rule))
    faults.push_back(beyond("rms", rms, *rule));
  if (rule) {
    row["lowest"] = rule->lowest;
    row["highest"] = rule->highest;
  }
  add(std::move(row), faults, to);
}

// Counts each code, whatever the layout: all four codes of a byte are weights.
std::array<uint64_t, 4> count_codes(std::span<const std::byte> packed) {
  using counts = std::array<uint64_t, 256>;
  std::vector<counts> parts((packed.size() + part_elements - 1) / part_elements);
  base::for_each_part(parts.size(), [&](uint64_t part) {
    const auto bytes = packed.subspan(part * part_elements);
    for (const std::byte one : bytes.first(std::min<uint64_t>(part_elements, bytes.size())))
      ++parts[part][std::to_integer<std::size_t>(one)];
  });
  std::array<uint64_t, 4> out{};
  for (const counts& part : parts)
    for (std::size_t byte = 0; byte < part.size(); ++byte)
      for (std::size_t shift = 0; shift < 8; shift += 2) out[byte >> shift & 3U] += part[byte];
  return out;
}

// Whether it has the size of bitnet.cpp's content: n / 4 bytes of codes, a scale, and padding.
bool is_of_bitnet_cpp(const gguf::tensor_info& t, uint64_t alignment, uint32_t layout) {
  constexpr uint64_t tail = 32;
  if (t.type != gguf::type::i2_s || layout == BITNET_I2S_LAYOUT_QK256 || t.elements % 4 != 0)
    return false;
  const uint64_t own = t.elements / 4 + tail;
  const auto padded = gguf::checked_pad(own, alignment);
  return t.bytes.size() >= own && padded && t.bytes.size() <= *padded;
}

void check_i2s(const gguf::tensor_info& t, tally& to) {
  const std::array<uint64_t, 4> codes = count_codes(t.bytes.first(t.elements / 4));
  const double zeros = static_cast<double>(codes[1]) / static_cast<double>(t.elements);
  const double scale = gguf::load<float>(t.bytes.subspan(t.elements / 4));
  std::vector<std::string> faults;
  if (codes[3] != 0)
    faults.push_back(fmt::format("code 3, which no writer makes, is there {} times", codes[3]));
  if (!std::isfinite(scale) || scale <= 0)
    faults.push_back(fmt::format("scale {:g} is not a finite positive number", scale));
  else if (!is_within(scale, scales))
    faults.push_back(beyond("scale", scale, scales));
  if (!is_within(zeros, zero_fractions))
    faults.push_back(beyond("the fraction of zeros", zeros, zero_fractions));
  json row = row_of(t, "ternary");
  row["scale"] = shown(scale);
  row["zero_fraction"] = zeros;
  row["code_3"] = codes[3];
  add(std::move(row), faults, to);
}

void check_tensor(const gguf::tensor_info& t, uint64_t alignment, uint32_t layout,
                  const rule_set& rules, tally& to) {
  if (is_of_bitnet_cpp(t, alignment, layout))
    check_i2s(t, to);
  else if (t.rank == 1 && is_norm(t.name))
    check_rms(t, "norm", norm_bounds(rules, t.name), to);
  else if (t.rank == 2 && is_projection(t.name))
    check_rms(t, "projection", rules.projection, to);
}

}  // namespace

result<std::string> inspect_weights(const std::filesystem::path& file,
                                    const model::load_options& options, std::string_view rules) {
  const auto opened = model::open_file(file, options.judge);
  if (!opened) return std::unexpected(opened.error());
  const auto chosen = choose_rules(rules, opened->metadata());
  if (!chosen) return std::unexpected(chosen.error());
  tally all;
  for (const auto& t : opened->tensors()) {
    const uint64_t alignment = opened->containers()[t.shard].alignment();
    check_tensor(t.info, alignment, options.i2s_layout, *chosen, all);
    opened->give_back(t.info.bytes);
  }
  if (auto whole = opened->check_read(); !whole) return std::unexpected(whole.error());
  const json report = {{"file", file.native()},
                       {"rules", chosen->name},
                       {"checked", all.checked},
                       {"suspicious", all.suspicious},
                       {"tensors", std::move(all.tensors)}};
  return report.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace bitnet::inspect
