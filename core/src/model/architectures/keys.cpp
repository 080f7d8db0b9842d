#include "model/architectures/keys.hpp"

#include <fmt/core.h>

#include <cmath>

#include "gguf/text.hpp"

namespace bitnet::model {
namespace {

using gguf::quote;

// The number that an array with an element per layer repeats.
std::optional<int64_t> common(const gguf::value& array, bool& same) {
  std::optional<int64_t> n;
  gguf::for_each_element(array, [&](const gguf::value& element) {
    const auto x = gguf::to_integer(element);
    same = !n || n == x;
    n = x;
    return same && x.has_value();
  });
  return n;
}

}  // namespace

bool keys::is_zero(std::string_view key) const {
  const gguf::value* v = metadata_.find(name(key));
  return v != nullptr && gguf::to_real(*v) == 0.0;
}

uint32_t keys::count(std::string_view key, const range& within) {
  if (!has(key)) return missing(key);
  return optional_count(key, within, 0);
}

uint32_t keys::optional_count(std::string_view key, const range& within, uint32_t otherwise) {
  const gguf::value* v = metadata_.find(name(key));
  if (v == nullptr) return otherwise;
  bool same = true;
  const auto n = v->type == gguf::value_type::array ? common(*v, same) : gguf::to_integer(*v);
  if (!same)
    return stop(
        fmt::format("metadata key {} differs between layers, which this program does not support",
                    quote(name(key))),
        BITNET_UNSUPPORTED);
  if (!n)
    return stop(fmt::format("metadata key {} should be an integer, but is of type {}",
                            quote(name(key)), name_of(v->type)));
  if (*n < within.least || *n > within.most)
    return stop(fmt::format("metadata key {} is {}; expected {} to {}{}{}", quote(name(key)), *n,
                            within.least, within.most, *n > within.most ? ": " : "",
                            *n > within.most ? within.because : ""));
  return static_cast<uint32_t>(*n);
}

std::optional<std::vector<bool>> keys::truths(std::string_view key, uint32_t n) {
  const gguf::value* v = metadata_.find(name(key));
  if (v == nullptr || v->type != gguf::value_type::array) return std::nullopt;
  std::vector<bool> out;
  gguf::for_each_element(*v, [&](const gguf::value& element) {
    const auto whole = gguf::to_integer(element);
    const auto x = whole ? std::optional(*whole != 0) : gguf::to_boolean(element);
    if (x && out.size() < n) out.push_back(*x);
    return x.has_value();
  });
  if (out.size() == n && v->count == n) return out;
  stop(
      fmt::format("metadata key {} has {} elements of type {}; expected true or false for each "
                  "of {} layers",
                  quote(name(key)), v->count, name_of(v->element), n));
  return std::nullopt;
}

std::optional<float> keys::optional_positive(std::string_view key) {
  const auto x = metadata_.real(name(key));
  if (!x) {
    stop(x.error());
    return std::nullopt;
  }
  const std::optional<double> wide = *x;
  if (!wide) return std::nullopt;
  const auto narrow = static_cast<float>(*wide);
  if (std::isfinite(narrow) && narrow > 0) return narrow;
  stop(fmt::format("metadata key {} is not a finite number above zero; the file is damaged",
                   quote(name(key))));
  return std::nullopt;
}

float keys::positive(std::string_view key) {
  if (!has(key)) missing(key);
  return optional_positive(key).value_or(0);
}

std::string keys::text(std::string_view key) {
  const auto x = metadata_.text(name(key));
  if (x) return std::string(x->value_or(""));
  stop(x.error());
  return {};
}

uint32_t keys::missing(std::string_view key) {
  return stop(fmt::format(
      "metadata key {} is missing; expected the file to carry it: convert the model again",
      quote(name(key))));
}

}  // namespace bitnet::model
