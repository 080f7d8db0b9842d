#include "model/hadamard.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "gguf/text.hpp"

namespace bitnet::model {
namespace {

using gguf::quote;

constexpr std::string_view prefix = "prism.hadamard.";
constexpr int64_t known_version = 1;
constexpr int64_t largest_block = 65536;  // 64 times the usual block; a limit for readers

std::string key_of(std::string_view name) {
  return std::string(prefix) + std::string(name);
}

std::unexpected<failure> missing(std::string_view name) {
  return fail(BITNET_BAD_DATA,
              fmt::format("metadata key {} is missing beside other keys of rotated weights; the "
                          "file is damaged: download it again",
                          quote(key_of(name))));
}

std::unexpected<failure> unknown(std::string_view name, const std::string& found,
                                 std::string_view expected) {
  return fail(BITNET_UNSUPPORTED,
              fmt::format("metadata key {} is {}; this program knows {}: weights rotated otherwise "
                          "cannot be used, choose a file of the model without rotation",
                          quote(key_of(name)), found, expected));
}

result<int64_t> number(const gguf::container& metadata, std::string_view name) {
  const auto found = metadata.integer(key_of(name));
  if (!found) return std::unexpected(found.error());
  const std::optional<int64_t> x = *found;
  if (!x) return missing(name);
  return *x;
}

// Reads a key whose value is one of a few words.
result<std::string> word(const gguf::container& metadata, std::string_view name,
                         std::initializer_list<std::string_view> known) {
  const auto found = metadata.text(key_of(name));
  if (!found) return std::unexpected(found.error());
  const std::optional<std::string_view> text = *found;
  if (!text) return missing(name);
  if (std::ranges::find(known, *text) != known.end()) return std::string(*text);
  std::string names;
  for (const std::string_view one : known)
    names += fmt::format("{}{}", names.empty() ? "" : " and ", quote(one));
  return unknown(name, quote(*text), names);
}

result<const gguf::value*> array(const gguf::container& metadata, std::string_view name) {
  const gguf::value* found = metadata.find(key_of(name));
  if (found == nullptr) return missing(name);
  if (found->type != gguf::value_type::array)
    return fail(BITNET_BAD_DATA,
                fmt::format("metadata key {} should be an array, but is of type {}",
                            quote(key_of(name)), name_of(found->type)));
  return found;
}

result<std::vector<std::string>> names(const gguf::container& metadata, std::string_view name) {
  const auto from = array(metadata, name);
  if (!from) return std::unexpected(from.error());
  std::vector<std::string> out;
  bool right = true;
  gguf::for_each_element(**from, [&](const gguf::value& element) {
    const auto text = gguf::to_string(element);
    right = text.has_value();
    if (right) out.emplace_back(*text);
    return right;
  });
  if (!right)
    return fail(BITNET_BAD_DATA,
                fmt::format("metadata key {} should be a list of names", quote(key_of(name))));
  return out;
}

result<std::vector<int8_t>> read_signs(const gguf::container& metadata) {
  const auto from = array(metadata, "sign_values");
  if (!from) return std::unexpected(from.error());
  std::vector<int8_t> out;
  bool right = true;
  gguf::for_each_element(**from, [&](const gguf::value& element) {
    const double x = gguf::to_real(element).value_or(0);
    right = x == 1 || x == -1;
    out.push_back(static_cast<int8_t>(x < 0 ? -1 : 1));
    return right;
  });
  if (!right)
    return fail(
        BITNET_BAD_DATA,
        fmt::format("element {} of metadata key {} is neither 1 nor -1; the file is damaged",
                    out.size() - 1, quote(key_of("sign_values"))));
  return out;
}

// The signs of all widths are stored one after the other.
result<std::vector<hadamard::width>> read_widths(const gguf::container& metadata) {
  const auto from = array(metadata, "sign_widths");
  if (!from) return std::unexpected(from.error());
  const auto signs = read_signs(metadata);
  if (!signs) return std::unexpected(signs.error());
  std::vector<hadamard::width> out;
  uint64_t taken = 0;
  bool right = true;
  gguf::for_each_element(**from, [&](const gguf::value& element) {
    const int64_t columns = gguf::to_integer(element).value_or(0);
    right = columns > 0 && std::cmp_less_equal(columns, signs->size() - taken) &&
            std::ranges::none_of(out,
                                 [&](const auto& w) { return std::cmp_equal(w.columns, columns); });
    if (!right) return false;
    const auto first = signs->begin() + static_cast<ptrdiff_t>(taken);
    out.push_back({static_cast<uint64_t>(columns), {first, first + columns}});
    taken += static_cast<uint64_t>(columns);
    return true;
  });
  if (!right || taken != signs->size() || out.empty())
    return fail(
        BITNET_BAD_DATA,
        fmt::format("metadata keys {} and {} do not agree: expected different widths above "
                    "zero, in sum the {} signs that there are; the file is damaged",
                    quote(key_of("sign_widths")), quote(key_of("sign_values")), signs->size()));
  return out;
}

// Checks that the rotation can be undone: whole blocks, and signs for rows of this length.
result<void> check_tensor(const gguf::file& file, const hadamard& form, const std::string& name) {
  const auto* found = file.find(name);
  if (found == nullptr) found = file.find(name + ".weight");
  if (found == nullptr)
    return fail(BITNET_BAD_DATA,
                fmt::format("metadata says that tensor {} is rotated, and the file "
                            "has none of this name; a part may be missing",
                            quote(name)));
  const uint64_t columns = found->info.ne[0];
  if (columns % form.block != 0)
    return fail(BITNET_BAD_DATA,
                fmt::format("tensor {} is rotated in blocks of {}, but has rows of {} elements; "
                            "expected a multiple",
                            quote(name), form.block, columns));
  const bool has_signs =
      form.widths.empty() || std::ranges::any_of(form.widths, [&](const hadamard::width& w) {
        return w.columns == columns;
      });
  if (!has_signs)
    return fail(BITNET_BAD_DATA,
                fmt::format("tensor {} is rotated and has rows of {} elements, for "
                            "which metadata key {} gives no signs",
                            quote(name), columns, quote(key_of("sign_widths"))));
  return {};
}

result<void> read_form(const gguf::container& metadata, hadamard& form) {
  const auto version = number(metadata, "version");
  if (!version) return std::unexpected(version.error());
  if (*version != known_version)
    return unknown("version", std::to_string(*version), std::to_string(known_version));
  const auto block = number(metadata, "block_size");
  if (!block) return std::unexpected(block.error());
  if (*block < 2 || *block > largest_block || !std::has_single_bit(static_cast<uint64_t>(*block)))
    return fail(BITNET_BAD_DATA,
                fmt::format("metadata key {} is {}; expected a power of two from 2 to {}",
                            quote(key_of("block_size")), *block, largest_block));
  form.block = static_cast<uint32_t>(*block);
  if (auto ok = word(metadata, "transform", {"normalized-sylvester-walsh-hadamard"}); !ok)
    return std::unexpected(ok.error());
  if (auto ok = word(metadata, "axis", {"input-last-dimension"}); !ok)
    return std::unexpected(ok.error());
  const auto mode = word(metadata, "sign_mode", {"identity", "explicit"});
  if (!mode) return std::unexpected(mode.error());
  if (*mode == "identity") return {};
  auto widths = read_widths(metadata);
  if (!widths) return std::unexpected(widths.error());
  form.widths = std::move(*widths);
  return {};
}

}  // namespace

result<std::optional<hadamard>> read_hadamard(const gguf::file& file) {
  const gguf::container& metadata = file.metadata();
  if (std::ranges::none_of(metadata.entries(),
                           [](const gguf::entry& e) { return e.key.starts_with(prefix); }))
    return std::nullopt;
  hadamard form;
  if (auto ok = read_form(metadata, form); !ok) return std::unexpected(ok.error());
  for (const auto& [key, to] : {std::pair{"weight_names", &form.weights},
                                std::pair{"inverse_weight_names", &form.tables}}) {
    if (to == &form.tables && metadata.find(key_of(key)) == nullptr) continue;
    auto all = names(metadata, key);
    if (!all) return std::unexpected(all.error());
    *to = std::move(*all);
    for (const std::string& name : *to)
      if (auto ok = check_tensor(file, form, name); !ok) return std::unexpected(ok.error());
  }
  const auto grouped = metadata.boolean(key_of("gdn_v_grouped"));
  if (!grouped) return std::unexpected(grouped.error());
  form.heads_are_grouped = grouped->value_or(false);
  return form;
}

}  // namespace bitnet::model
