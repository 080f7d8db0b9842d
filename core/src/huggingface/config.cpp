#include "huggingface/config.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "gguf/text.hpp"
#include "huggingface/json_members.hpp"
#include "huggingface/rope.hpp"

namespace bitnet::huggingface {
namespace {

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

// How the linear layers are kept. docs/reference/weights.md#checkpoints
result<linear_kind> linear_kind_of(const json& c, bool is_bitnet) {
  const json& q = at(c, "quantization_config");
  if (!q.is_object()) return is_bitnet ? linear_kind::master : linear_kind::plain;
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
  return text_at(q, "quantization_mode") == "online" ? linear_kind::master : linear_kind::packed;
}

std::vector<float> numbers_at(const json& object, const char* key) {
  const json& list = at(object, key);
  std::vector<float> out;
  if (!list.is_array()) return out;
  for (const json& x : list)
    if (x.is_number()) out.push_back(x.get<float>());
  return out.size() == list.size() ? out : std::vector<float>();
}

// Which part of a head rotates.
double rotating_share(const json& c, const json& parameters, const config& about) {
  constexpr const char* key = "partial_rotary_factor";
  for (const json* place : {&parameters, &c})
    if (const json& x = at(*place, key); x.is_number()) return x.get<double>();
  return about.states.keys != 0 ? 0.25 : 1;  // transformers' own default
}

// Of layers that see everything, where others have a window and a base of their own.
result<rope_config> read_rope(const json& c, uint32_t head_dim, const config& about) {
  const bool gemma = about.gemma;
  // Newer files keep all of it in rope_parameters.
  const json& all = at(c, "rope_parameters");
  const json& parameters = gemma ? at(all, "full_attention") : all;
  if (gemma && all.is_object() && !parameters.is_object())
    return bad_data("config.json: expected an object 'full_attention' in rope_parameters");
  const json& scaling = parameters.is_object() ? parameters : at(c, "rope_scaling");
  for (const json& one : scaling)
    if (one.is_object())
      return fail(BITNET_UNSUPPORTED,
                  "config.json: RoPE differs between kinds of layers, which this program does not "
                  "support");
  const bool hybrid = about.states.keys != 0;
  if (!hybrid && rotating_share(c, scaling, about) != 1)
    return fail(BITNET_UNSUPPORTED,
                "config.json: partial_rotary_factor is not 1; this program reads "
                "checkpoints that rotate whole heads, but for 'qwen3_5_text'");
  if (false_at(scaling, "truncate"))
    return fail(BITNET_UNSUPPORTED,
                "config.json: truncate of RoPE scaling is false, which this program does not "
                "compute");
  rope_config to{.kind = text_at(scaling, "rope_type"), .head_dim = head_dim};
  if (to.kind.empty()) to.kind = text_at(scaling, "type");
  if (hybrid && !to.kind.empty() && to.kind != "default")
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: RoPE scaling of type {} of a part of a head; expected "
                            "'default'",
                            quote(to.kind)));
  to.theta = number_at(parameters, "rope_theta")
                 .or_else([&] { return number_at(c, "rope_theta"); })
                 .value_or(to.theta);
  if (gemma && !at(parameters, "rope_theta").is_number() && !at(c, "rope_theta").is_number())
    to.theta = 1e6F;  // transformers' own default
  to.longest_context = count_at(c, "max_position_embeddings").value_or(0);
  constexpr const char* original = "original_max_position_embeddings";
  to.original_context = count_at(scaling, original).or_else([&] { return count_at(c, original); });
  to.factor = number_at(scaling, "factor");
  to.attention_factor = number_at(scaling, "attention_factor");
  to.low_freq_factor = number_at(scaling, "low_freq_factor");
  to.high_freq_factor = number_at(scaling, "high_freq_factor");
  to.beta_fast = number_at(scaling, "beta_fast");
  to.beta_slow = number_at(scaling, "beta_slow");
  to.mscale = number_at(scaling, "mscale");
  to.mscale_all = number_at(scaling, "mscale_all_dim");
  to.short_factors = numbers_at(scaling, "short_factor");
  to.long_factors = numbers_at(scaling, "long_factor");
  return to;
}

// "<s>", or {"content": "<s>", ...}
std::string token_text(const json& object, const char* key) {
  const json& x = at(object, key);
  return x.is_string() ? x.get<std::string>() : text_at(x, "content");
}

// A number, or the first of a list of them.
std::optional<uint32_t> token_id(const json& object, const char* key) {
  const json& x = at(object, key);
  return x.is_array() && !x.empty() ? count_of(x[0]) : count_of(x);
}

result<void> check_biases(const json& c) {
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (true_at(c, key))
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("config.json: {} is true; this program computes no biases", key));
  return {};
}

result<config> gemma_of(const json& c) {
  if (const json& act = at(c, "hidden_activation"); !act.is_null() && act != "gelu_pytorch_tanh")
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: hidden_activation is {}; expected 'gelu_pytorch_tanh'",
                            quote(act.dump())));
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (!at(c, key).is_null())
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("config.json: {} is set, which this program does not compute", key));
  if (true_at(c, "use_bidirectional_attention"))
    return fail(BITNET_UNSUPPORTED,
                "config.json: use_bidirectional_attention is true; this program computes causal "
                "attention");
  if (auto ok = check_biases(c); !ok) return std::unexpected(ok.error());
  auto kind = linear_kind_of(c, false);
  if (!kind) return std::unexpected(kind.error());
  config to;
  to.architecture = "gemma3";
  to.linear = *kind;
  to.gemma = true;
  to.norms_above_one = true;
  return to;
}

result<config> hybrid_of(const json& c) {
  if (const std::string act = text_at(c, "hidden_act"); act != "silu")
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: hidden_act is {}; expected 'silu'", quote(act)));
  if (false_at(c, "attn_output_gate"))
    return fail(BITNET_UNSUPPORTED,
                "config.json: attn_output_gate is false; this program computes gated attention in "
                "these models");
  if (auto ok = check_biases(c); !ok) return std::unexpected(ok.error());
  auto kind = linear_kind_of(c, false);
  if (!kind) return std::unexpected(kind.error());
  config to;
  to.architecture = "qwen35";
  to.linear = *kind;
  to.norms_above_one = true;
  uint64_t values = 0;
  const std::pair<const char*, uint64_t*> counts[] = {
      {"linear_num_key_heads", &to.states.keys},
      {"linear_num_value_heads", &values},
      {"linear_key_head_dim", &to.states.key_size},
      {"linear_value_head_dim", &to.states.value_size}};
  for (const auto& [key, into] : counts) {
    const auto n = needed(c, key);
    if (!n) return std::unexpected(n.error());
    constexpr uint32_t most = 32768;  // no model comes near; products of two fit 32 bits
    if (*n == 0 || *n > most)
      return bad_data(fmt::format("config.json: {} is {}; expected 1 to {}", quote(key), *n, most));
    *into = *n;
  }
  if (values % to.states.keys != 0)
    return bad_data(fmt::format(
        "config.json: {} value heads are shared by {} key heads; expected a multiple of these",
        values, to.states.keys));
  to.states.in_group = values / to.states.keys;
  return to;
}

// After how many layers one comes that sees everything: each n-th, by layer_types, where the others
// are of the type `other`, or by the first of `keys` that there is, or as it is usual.
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

result<void> put_windows(const json& c, const config& about, uint32_t head_dim,
                         const std::string& prefix, gguf::metadata_builder& out) {
  const auto window = needed(c, "sliding_window");
  if (!window) return std::unexpected(window.error());
  out.u32(prefix + "attention.sliding_window", *window);
  constexpr uint32_t usual = 6;
  const auto period = period_of(c, about.n_layers, "sliding_attention",
                                {"sliding_window_pattern", "_sliding_window_pattern"}, usual);
  if (!period) return std::unexpected(period.error());
  if (*period != usual) out.u32(prefix + "attention.sliding_window_pattern", *period);
  const json& local = at(at(c, "rope_parameters"), "sliding_attention");
  if (const std::string kind = text_at(local, "rope_type"); !kind.empty() && kind != "default")
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("config.json: RoPE scaling of type {} in layers with a window; expected "
                    "none",
                    quote(kind)));
  const auto theta =
      number_at(local, "rope_theta").or_else([&] { return number_at(c, "rope_local_base_freq"); });
  out.f32(prefix + "rope.freq_base_swa", theta.value_or(10000));
  const float scalar = number_at(c, "query_pre_attn_scalar").value_or(256);
  if (!(scalar > 0))
    return bad_data("config.json: expected a number above zero under 'query_pre_attn_scalar'");
  // 62 layers alone say another scale to readers of GGUF.
  if (scalar != static_cast<float>(head_dim) || about.n_layers == 62)
    out.f32(prefix + "attention.scale", 1 / std::sqrt(scalar));
  return {};
}

// Layers that keep a state, and the part of a head that rotates in the others.
result<void> put_states(const json& c, const config& about, uint32_t head_dim,
                        const std::string& prefix, gguf::metadata_builder& out) {
  const auto taps = needed(c, "linear_conv_kernel_dim");
  if (!taps) return std::unexpected(taps.error());
  const auto period =
      period_of(c, about.n_layers, "linear_attention", {"full_attention_interval"}, 4);
  if (!period) return std::unexpected(period.error());
  if (*period == 0)
    return bad_data("config.json: expected a count above zero under 'full_attention_interval'");
  const state_heads& heads = about.states;
  const auto put = [&](const char* key, uint64_t x) {
    out.u32(prefix + key, static_cast<uint32_t>(x));
  };
  put("full_attention_interval", *period);
  put("ssm.conv_kernel", *taps);
  put("ssm.state_size", heads.key_size);
  put("ssm.group_count", heads.keys);
  put("ssm.time_step_rank", heads.keys * heads.in_group);
  put("ssm.inner_size", heads.keys * heads.in_group * heads.value_size);

  const json& parameters = at(c, "rope_parameters");
  const double turning = head_dim * rotating_share(c, parameters, about);
  if (!(turning >= 2) || turning > head_dim)
    return bad_data(fmt::format(
        "config.json: partial_rotary_factor leaves {} of {} elements of a head to rotate",
        std::to_string(turning), head_dim));
  put("rope.dimension_count", static_cast<uint64_t>(turning));
  // Other readers of GGUF need them. In a text the three positions that they part are equal.
  std::array<int32_t, 4> sections = {11, 11, 10, 0};
  if (const json& said = at(parameters, "mrope_section"); said.is_array()) {
    sections = {};
    for (std::size_t i = 0; i < std::min(said.size(), sections.size()); ++i)
      sections[i] = static_cast<int32_t>(count_of(said[i]).value_or(0));
  }
  out.i32s(prefix + "rope.dimension_sections", sections);
  return {};
}

// What kind of model it is: architecture, activation and linear layers.
result<config> kind_of(const json& c, const std::string& tokenizer) {
  const std::string type = text_at(c, "model_type");
  config to;
  const bool is_bitnet = type == "bitnet";
  const bool is_qwen3 = type == "qwen3";
  if (type == "gemma3_text") return gemma_of(c);
  if (type == "qwen3_5_text") return hybrid_of(c);
  if (!is_bitnet && !is_qwen3 && type != "llama")
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: model_type is {}; this program runs 'bitnet', 'llama', "
                            "'qwen3', 'qwen3_5_text' and 'gemma3_text'{}",
                            quote(type),
                            at(c, "text_config").is_object()
                                ? "; save its text model by itself with transformers"
                                : ""));
  const std::string act = text_at(c, "hidden_act");
  if (true_at(c, "use_sliding_window"))
    return fail(BITNET_UNSUPPORTED,
                "config.json: use_sliding_window is true; this program has no windows of layers");
  if (act != "silu" && !(is_bitnet && act == "relu2"))
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: hidden_act is {}; expected {}", quote(act),
                            is_bitnet ? "'relu2' or 'silu'" : "'silu'"));
  // Each name says the activation, given the tokenizer: docs/reference/models.md#gate
  to.architecture = is_qwen3              ? "qwen3"
                    : !is_bitnet          ? "llama"
                    : act == "silu"       ? "bitnet"
                    : tokenizer == "gpt2" ? "bitnet-b1.58"
                                          : "bitnet-25";
  to.rotates_neighbours = type == "llama";
  if (auto ok = check_biases(c); !ok) return std::unexpected(ok.error());
  auto kind = linear_kind_of(c, is_bitnet);
  if (!kind) return std::unexpected(kind.error());
  to.linear = *kind;
  return to;
}

// Sizes of the model, each under its key of GGUF. Returns the elements of a head.
result<uint32_t> read_sizes(const json& c, const std::string& prefix, config& to,
                            gguf::metadata_builder& out) {
  const auto count = [&](const char* from, const char* key, uint64_t& into) -> result<void> {
    const auto n = needed(c, from);
    if (!n) return std::unexpected(n.error());
    into = *n;
    if (*key != '\0') out.u32(prefix + key, *n);
    return {};
  };
  uint64_t ignored = 0;
  uint64_t n_embedding = 0;
  to.n_kv_heads = count_at(c, "num_key_value_heads").value_or(0);
  for (auto ok : {count("max_position_embeddings", "context_length", ignored),
                  count("hidden_size", "embedding_length", n_embedding),
                  count("num_hidden_layers", "block_count", to.n_layers),
                  count("intermediate_size", "feed_forward_length", ignored),
                  count("num_attention_heads", "attention.head_count", to.n_heads),
                  count("vocab_size", "vocab_size", to.n_vocab)})
    if (!ok) return std::unexpected(ok.error());
  if (to.n_kv_heads == 0) to.n_kv_heads = to.n_heads;
  out.u32(prefix + "attention.head_count_kv", static_cast<uint32_t>(to.n_kv_heads));
  auto head = count_at(c, "head_dim");
  // transformers' own defaults
  if (!head && to.architecture == "qwen3") head = 128;
  const bool hybrid = to.states.keys != 0;
  if (!head && (to.gemma || hybrid)) head = 256;
  if (head) {
    out.u32(prefix + "attention.key_length", *head);
    out.u32(prefix + "attention.value_length", *head);
    if (!hybrid) out.u32(prefix + "rope.dimension_count", *head);
  }
  return static_cast<uint32_t>(head.value_or(to.n_heads == 0 ? 0 : n_embedding / to.n_heads));
}

}  // namespace

result<json> parse_object(std::string_view text, const char* name) {
  json content = json::parse(text, nullptr, false);
  if (!content.is_object()) return bad_data(fmt::format("{} is no JSON object", name));
  return content;
}

result<config> read_config(const json& c, const std::string& tokenizer, gguf::metadata_builder& out,
                           std::vector<gguf::file::foreign_tensor>& made) {
  auto to = kind_of(c, tokenizer);
  if (!to) return to;
  const std::string prefix = to->architecture + ".";
  out.text("general.architecture", to->architecture);
  const auto head_dim = read_sizes(c, prefix, *to, out);
  if (!head_dim) return std::unexpected(head_dim.error());
  const auto epsilon = number_at(c, "rms_norm_eps");
  if (!epsilon) return bad_data("config.json: expected a number under 'rms_norm_eps'");
  out.f32(prefix + "attention.layer_norm_rms_epsilon", *epsilon);
  const auto rope = read_rope(c, *head_dim, *to);
  if (!rope) return std::unexpected(rope.error());
  if (auto ok = put_rope(*rope, prefix, out, made); !ok) return std::unexpected(ok.error());
  if (to->gemma)
    if (auto ok = put_windows(c, *to, *head_dim, prefix, out); !ok)
      return std::unexpected(ok.error());
  if (to->states.keys != 0)
    if (auto ok = put_states(c, *to, *head_dim, prefix, out); !ok)
      return std::unexpected(ok.error());
  // transformers' own default is false, but for Gemma
  to->tied = to->gemma ? !false_at(c, "tie_word_embeddings") : true_at(c, "tie_word_embeddings");
  return to;
}

tokenizer_hints hints_of(const json& c, const json& t) {
  tokenizer_hints h;
  h.n_vocab = count_at(c, "vocab_size").value_or(0);
  h.bos_text = token_text(t, "bos_token");
  h.eos_text = token_text(t, "eos_token");
  h.padding_text = token_text(t, "pad_token");
  h.unknown_text = token_text(t, "unk_token");
  if (h.bos_text.empty()) h.bos = token_id(c, "bos_token_id");
  if (h.eos_text.empty()) h.eos = token_id(c, "eos_token_id");
  if (h.padding_text.empty()) h.padding = token_id(c, "pad_token_id");
  if (const json& x = at(t, "add_bos_token"); x.is_boolean()) h.add_bos = x.get<bool>();
  h.chat_template = text_at(t, "chat_template");
  return h;
}

result<std::vector<std::string>> files_of_index(const json& index, const char* name) {
  std::set<std::string> names;
  const json& map = at(index, "weight_map");
  if (!map.is_object() || map.empty())
    return bad_data(fmt::format("{}: expected an object 'weight_map'", name));
  for (const json& one : map) {
    const std::string file = one.is_string() ? one.get<std::string>() : "";
    // The system would read a name up to its first zero byte, which is another name.
    constexpr std::string_view never("/\0", 2);
    if (file.empty() || file.find_first_of(never) != std::string::npos || file == "." ||
        file == "..")
      return bad_data(
          fmt::format("{} names {}, which is no file of the folder", name, quote(file)));
    names.insert(file);
  }
  return std::vector<std::string>{names.begin(), names.end()};
}

}  // namespace bitnet::huggingface
