#include "huggingface/config_reading.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "gguf/text.hpp"

namespace bitnet::huggingface {

using gguf::quote;
using nlohmann::json;

std::optional<uint32_t> count_of(const json& x) {
  if (!x.is_number_unsigned() || x.get<uint64_t>() > UINT32_MAX) return std::nullopt;
  return x.get<uint32_t>();
}

std::optional<uint32_t> count_at(const json& object, const char* key) {
  return count_of(at(object, key));
}

std::optional<float> number_at(const json& object, const char* key) {
  const json& x = at(object, key);
  if (!x.is_number()) return std::nullopt;
  return x.get<float>();
}

result<uint32_t> needed(const json& c, const char* key) {
  const auto n = count_at(c, key);
  if (!n) return bad_data(fmt::format("config.json: expected a count under {}", quote(key)));
  return *n;
}

result<linear_kind> linear_kind_of(const json& c, linear_kind usual) {
  const json& q = at(c, "quantization_config");
  if (!q.is_object()) return usual;
  if (const std::string method = text_at(q, "quant_method"); method != "bitnet")
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("config.json: quant_method is {}; this program reads 'bitnet'", quote(method)));
  if (true_at(q, "use_rms_norm"))
    return fail(BITNET_UNSUPPORTED,
                "config.json: use_rms_norm asks for a norm inside each linear layer, which this "
                "program does not compute");
  const std::string kind = text_at(q, "linear_class");
  if (kind.empty() || kind == "bitlinear") return linear_kind::packed_inverse;
  if (kind != "autobitlinear")
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format(
            "config.json: linear_class is {}; this program reads 'bitlinear' and 'autobitlinear'",
            quote(kind)));
  const std::string mode = text_at(q, "quantization_mode");
  if (!mode.empty() && mode != "offline" && mode != "online")
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: quantization_mode is {}; this program reads 'offline' "
                            "and 'online'",
                            quote(mode)));
  if (mode != "online") return linear_kind::packed;
  // Other layers show their kind by their tensors.
  if (const json& kept = at(q, "modules_to_not_convert"); kept.is_array())
    for (const json& one : kept)
      if (one != "lm_head" && one != "model.embed_tokens")
        return fail(BITNET_UNSUPPORTED,
                    fmt::format("config.json: modules_to_not_convert names {}; this program makes "
                                "all linear layers of 'online' models ternary",
                                one.dump()));
  return linear_kind::master;
}

result<void> check_biases(const json& c) {
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (true_at(c, key))
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("config.json: {} is true; this program computes no biases", key));
  return {};
}

result<config> silu_or(const json& c, const std::string& other, linear_kind usual) {
  const std::string act = text_at(c, "hidden_act");
  if (true_at(c, "use_sliding_window"))
    return fail(BITNET_UNSUPPORTED,
                "config.json: use_sliding_window is true; this program has no windows of layers");
  if (act != "silu" && (other.empty() || act != other))
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: hidden_act is {}; expected {}", quote(act),
                            other.empty() ? "'silu'" : quote(other) + " or 'silu'"));
  if (const json& all = at(c, "layer_types"); all.is_array())
    for (const json& one : all)
      if (one != "full_attention")
        return fail(BITNET_UNSUPPORTED,
                    fmt::format("config.json: layer_types has {}; expected \"full_attention\" for "
                                "all layers of these models",
                                one.dump()));
  if (auto ok = check_biases(c); !ok) return std::unexpected(ok.error());
  auto kind = linear_kind_of(c, usual);
  if (!kind) return std::unexpected(kind.error());
  config to;
  to.linear = *kind;
  return to;
}

double rotating_share(const json& c, const json& parameters, double usual) {
  constexpr const char* key = "partial_rotary_factor";
  for (const json* place : {&parameters, &c})
    if (const json& x = at(*place, key); x.is_number()) return x.get<double>();
  return usual;
}

result<uint32_t> period_of(const json& c, uint64_t n_layers, const char* other,
                           std::initializer_list<const char*> keys, uint32_t usual) {
  const json& types = at(c, "layer_types");
  if (!types.is_array()) {
    for (const char* key : keys)
      if (const auto said = count_at(c, key)) return *said;
    return usual;
  }
  const auto sees_all = [](const json& type) { return type == "full_attention"; };
  const auto first = std::ranges::find_if(types, sees_all);
  const auto period = static_cast<uint32_t>(first - types.begin()) + 1;
  bool regular = types.size() == n_layers;
  for (std::size_t n = 0; n < types.size(); ++n)
    regular = regular && (sees_all(types[n]) || types[n] == other) &&
              sees_all(types[n]) == ((n + 1) % period == 0);
  if (regular) return period;
  return fail(BITNET_UNSUPPORTED,
              fmt::format("config.json: layer_types is not {} for all of {} layers but each n-th, "
                          "which is 'full_attention'",
                          quote(other), n_layers));
}

}  // namespace bitnet::huggingface
