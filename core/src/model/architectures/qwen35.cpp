// The text model of Qwen3.5 and 3.6: most layers have a state in place of keys, with a short
// convolution and the gated delta rule; each n-th has attention and then a gate. Blocks behind the
// layers predict further tokens and are not in the graph.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "gguf/text.hpp"
#include "huggingface/config_reading.hpp"
#include "huggingface/numbers.hpp"
#include "model/architectures/architecture.hpp"

namespace bitnet::model {
namespace {

namespace hf = huggingface;
using gguf::quote;
using nlohmann::json;

void read_qwen35(hyperparameters& shape, keys& in) {
  shape.head_norms = true;
  shape.n_skipped = in.optional_count("nextn_predict_layers", {0, 65535, counts.because}, 0);
  if (shape.n_skipped >= shape.n_layers) {
    in.stop(fmt::format("metadata key {} is {}; expected fewer than the {} blocks",
                        quote(in.name("nextn_predict_layers")), shape.n_skipped, shape.n_layers));
    return;
  }
  shape.n_layers -= shape.n_skipped;
  const uint32_t period = in.optional_count("full_attention_interval", counts, 4);
  for (uint32_t n = 0; n < shape.n_layers; ++n)
    shape.recurrent.push_back((n + 1) % std::max(period, 1U) != 0);
  recurrence& r = shape.recurrence;
  r.taps = in.count("ssm.conv_kernel", {2, 32, "no model comes near"});
  r.key_heads = in.count("ssm.group_count", counts);
  r.value_heads = in.count("ssm.time_step_rank", counts);
  r.key_dim = in.count("ssm.state_size", counts);
  const uint32_t inner = in.count("ssm.inner_size", widths);
  if (!in.outcome()) return;
  if (r.value_heads % r.key_heads != 0 || inner % r.value_heads != 0) {
    in.stop(
        fmt::format("{} heads of keys, {} of values and {} elements of values do not divide "
                    "into one another; the file is damaged",
                    r.key_heads, r.value_heads, inner));
    return;
  }
  r.value_dim = inner / r.value_heads;
  if (r.channels() > static_cast<uint64_t>(exact_in_sum) ||
      uint64_t{r.key_dim} * inner > INT32_MAX || shape.state_elements() > INT32_MAX)
    in.stop(
        fmt::format("{} recurrent layers of {} heads of {} x {} make a state of more than 2^31 "
                    "elements; expected less",
                    shape.n_recurrent(), r.value_heads, r.key_dim, r.value_dim));
  if (shape.n_attending() == 0)
    in.stop(fmt::format("metadata key {} leaves no layer with attention among {}",
                        quote(in.name("full_attention_interval")), shape.n_layers),
            BITNET_UNSUPPORTED);
}

std::vector<layer_weight> attending_weights(const hyperparameters& shape) {
  std::vector<layer_weight> weights = attention_weights(shape);
  weights.front().m *= 2;  // a gate beside each head
  return weights;
}

std::vector<layer_weight> recurrent_weights(const hyperparameters& shape) {
  constexpr weight_kind matrix = weight_kind::matrix;
  const recurrence& r = shape.recurrence;
  return {{&layer::attn_qkv, "attn_qkv", matrix, shape.n_embedding, r.channels()},
          {&layer::attn_gate, "attn_gate", matrix, shape.n_embedding, r.values()},
          {&layer::ssm_alpha, "ssm_alpha", matrix, shape.n_embedding, r.value_heads},
          {&layer::ssm_beta, "ssm_beta", matrix, shape.n_embedding, r.value_heads},
          {&layer::ssm_conv, "ssm_conv1d", weight_kind::convolution, r.taps, r.channels()},
          {&layer::ssm_norm, "ssm_norm", weight_kind::norm, r.value_dim},
          {&layer::ssm_out, "ssm_out", matrix, r.values(), shape.n_embedding},
          {&layer::ssm_gates, "ssm_gates", weight_kind::decays, r.value_heads}};
}

std::vector<layer_weight> qwen35_weights(const hyperparameters& shape, uint32_t n) {
  const bool attends = !shape.is_recurrent(n);
  std::vector<layer_weight> weights = {
      {&layer::attn_norm, "attn_norm", weight_kind::norm, shape.n_embedding}};
  if (attends) append(weights, attending_weights(shape));
  // Other models call it ffn_norm.
  weights.push_back(
      {&layer::ffn_norm, "post_attention_norm", weight_kind::norm, shape.n_embedding});
  append(weights, gated_weights(shape));
  append(weights, attends ? head_norm_weights(shape) : recurrent_weights(shape));
  return weights;
}

uint32_t gated_attention(graph_builder& to, uint32_t n, uint32_t x) {
  const layer& l = to.layer_at(n);
  const uint32_t heads = to.shape().n_heads, kv_heads = to.shape().n_kv_heads;
  const auto in = to.read_by(to.norm(x, l.attn_norm), {l.attn_q, l.attn_k, l.attn_v});
  const uint32_t both = to.linear(in, l.attn_q);
  const auto dim = static_cast<int32_t>(to.shape().head_dim), n_q = static_cast<int32_t>(heads);
  const uint32_t gate =
      to.columns(both, {.length = dim, .first = dim, .inner = n_q, .inner_stride = 2 * dim});
  const uint32_t q = to.columns(both, {.length = dim, .inner = n_q, .inner_stride = 2 * dim});
  const uint32_t k = to.linear(in, l.attn_k);
  const uint32_t v = to.linear(in, l.attn_v);
  const uint32_t rotated = to.rope(to.head_norm(q, l.attn_q_norm, heads), heads, n);
  to.keep(to.rope(to.head_norm(k, l.attn_k_norm, kv_heads), kv_heads, n), v);
  const uint32_t a = to.attend(rotated, n);
  const uint32_t gated = to.product(a, to.through(BITNET_OP_SIGMOID, gate));
  return to.add(x, to.linear_of(gated, l.attn_output));
}

// A short convolution over queries, keys and values, then the delta rule, then norms of heads and a
// gate.
uint32_t recurrent(graph_builder& to, uint32_t at, uint32_t x) {
  const layer& l = to.layer_at(at);
  const recurrence& r = to.shape().recurrence;
  const auto n_k = static_cast<int32_t>(r.key_heads), n_v = static_cast<int32_t>(r.value_heads);
  const auto d_k = static_cast<int32_t>(r.key_dim), d_v = static_cast<int32_t>(r.value_dim);
  const auto in =
      to.read_by(to.norm(x, l.attn_norm), {l.attn_qkv, l.attn_gate, l.ssm_alpha, l.ssm_beta});
  const int32_t rows = to.take_state(r.rows_elements());
  const int32_t state = to.take_state(r.elements() - r.rows_elements());
  const uint32_t mixed = to.activation(static_cast<int64_t>(r.channels()));
  to.emit(BITNET_OP_SHORT_CONV, {to.linear(in, l.attn_qkv)}, {mixed}, {l.ssm_conv}).ints[0] = rows;
  const uint32_t active = to.through(BITNET_OP_SILU, mixed);
  const uint32_t gates = to.activation(int64_t{2} * n_v);
  to.emit(BITNET_OP_DELTA_GATES, {to.linear(in, l.ssm_alpha), to.linear(in, l.ssm_beta)}, {gates},
          {l.ssm_gates});
  const uint32_t y = to.activation(static_cast<int64_t>(r.values()));
  bitnet_op& rule = to.emit(BITNET_OP_DELTA_RULE, {active, gates}, {y});
  std::ranges::copy(std::array{state, n_k, n_v, d_k, d_v, BITNET_DELTA_TURNS}, rule.ints);
  rule.floats[0] = 1 / std::sqrt(static_cast<float>(d_k));
  rule.floats[1] = to.shape().rms_epsilon;
  const uint32_t gate = to.through(BITNET_OP_SILU, to.linear(in, l.attn_gate));
  uint32_t out = to.product(to.head_norm(y, l.ssm_norm, r.value_heads), gate);
  if (r.regrouped && !to.is_plain(l.ssm_out))
    out = to.columns(out, {.length = d_v,
                           .inner = n_v / n_k,
                           .inner_stride = n_k * d_v,
                           .outer = n_k,
                           .outer_stride = d_v});
  return to.add(x, to.linear_of(out, l.ssm_out));
}

uint32_t qwen35_layer(graph_builder& to, uint32_t n, uint32_t x) {
  x = to.shape().is_recurrent(n) ? recurrent(to, n, x) : gated_attention(to, n, x);
  return llama_feed_forward(to, n, x);
}

result<hf::config> qwen35_checkpoint(const json& c, const std::string& /*tokenizer*/) {
  if (const std::string act = hf::text_at(c, "hidden_act"); act != "silu")
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: hidden_act is {}; expected 'silu'", quote(act)));
  if (hf::false_at(c, "attn_output_gate"))
    return fail(BITNET_UNSUPPORTED,
                "config.json: attn_output_gate is false; this program computes gated attention in "
                "these models");
  if (auto ok = hf::check_biases(c); !ok) return std::unexpected(ok.error());
  auto kind = hf::linear_kind_of(c, hf::linear_kind::plain);
  if (!kind) return std::unexpected(kind.error());
  hf::config to;
  to.architecture = "qwen35";
  to.linear = *kind;
  to.norms_above_one = true;
  to.usual_head_dim = 256;
  to.usual_kv_heads = 4;
  to.rotates_parts = true;
  to.usual_rotating_share = 0.25;
  uint64_t values = 0;
  const std::pair<const char*, uint64_t*> counts[] = {
      {"linear_num_key_heads", &to.states.keys},
      {"linear_num_value_heads", &values},
      {"linear_key_head_dim", &to.states.key_size},
      {"linear_value_head_dim", &to.states.value_size}};
  for (const auto& [key, into] : counts) {
    const auto n = hf::needed(c, key);
    if (!n) return std::unexpected(n.error());
    constexpr uint32_t most = 32768;  // more than any model; a product of two fits 32 bits
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

// Writes the keys of layers with a state, and the rotating part of a head in the others.
result<void> put_states(const json& c, const hf::config& about, uint32_t head_dim,
                        const std::string& prefix, gguf::metadata_builder& out) {
  const auto taps = hf::needed(c, "linear_conv_kernel_dim");
  if (!taps) return std::unexpected(taps.error());
  const auto period =
      hf::period_of(c, about.n_layers, "linear_attention", {"full_attention_interval"}, 4);
  if (!period) return std::unexpected(period.error());
  if (*period == 0)
    return bad_data("config.json: expected a count above zero under 'full_attention_interval'");
  const hf::state_heads& heads = about.states;
  const auto put = [&](const char* key, uint64_t x) {
    out.u32(prefix + key, static_cast<uint32_t>(x));
  };
  put("full_attention_interval", *period);
  put("ssm.conv_kernel", *taps);
  put("ssm.state_size", heads.key_size);
  put("ssm.group_count", heads.keys);
  put("ssm.time_step_rank", heads.keys * heads.in_group);
  put("ssm.inner_size", heads.keys * heads.in_group * heads.value_size);

  const json& parameters = hf::at(c, "rope_parameters");
  const double turning = head_dim * hf::rotating_share(c, parameters, about.usual_rotating_share);
  if (!(turning >= 2) || turning > head_dim)
    return bad_data(fmt::format(
        "config.json: partial_rotary_factor leaves {} of {} elements of a head to rotate", turning,
        head_dim));
  put("rope.dimension_count", static_cast<uint64_t>(turning));
  // For other readers of GGUF. In a text the three positions of the sections are equal.
  std::array<int32_t, 4> sections = {11, 11, 10, 0};
  if (const json& said = hf::at(parameters, "mrope_section"); said.is_array()) {
    sections = {};
    for (std::size_t i = 0; i < std::min(said.size(), sections.size()); ++i)
      sections[i] = static_cast<int32_t>(hf::count_of(said[i]).value_or(0));
  }
  out.i32s(prefix + "rope.dimension_sections", sections);
  return {};
}

// How to reorder the value heads of a tensor: GGUF has the first of each key head, then the second
// of each, ... Groups of 0 if the tensor has no value heads.
gguf::head_reordering head_order_of(std::string_view ours, const hf::state_heads& heads) {
  gguf::head_reordering to{.groups = heads.keys, .in_group = heads.in_group, .width = 1};
  if (ours.ends_with(".ssm_alpha.weight") || ours.ends_with(".ssm_beta.weight") ||
      ours.ends_with(".ssm_a") || ours.ends_with(".ssm_dt.bias"))
    return to;
  to.width = heads.value_size;
  if (ours.ends_with(".attn_gate.weight")) return to;
  to.first = 2 * heads.keys * heads.key_size;
  if (ours.ends_with(".attn_qkv.weight") || ours.ends_with(".ssm_conv1d.weight")) return to;
  to.first = 0;
  to.columns = true;
  return ours.ends_with(".ssm_out.weight") ? to : gguf::head_reordering{};
}

// Reorders the rows of a small tensor, or the elements of a vector.
std::vector<float> reordered(const std::vector<float>& stored, const gguf::head_reordering& t,
                             std::size_t row) {
  std::vector<float> out(stored.begin(), stored.begin() + static_cast<ptrdiff_t>(t.first * row));
  for (uint64_t n = 0; n < t.in_group; ++n)
    for (uint64_t group = 0; group < t.groups; ++group) {
      const uint64_t head = t.first + (group * t.in_group + n) * t.width;
      const auto* from = stored.data() + head * row;
      out.insert(out.end(), from, from + t.width * row);
    }
  return out;
}

result<void> turn_heads(gguf::file::foreign_tensor& t, const std::string& theirs,
                        const hf::config& about) {
  const gguf::head_reordering head_order = head_order_of(t.name, about.states);
  if (head_order.groups == 0) return {};
  const bool is_taps = t.name.ends_with(".ssm_conv1d.weight");
  if (is_taps && t.ne.size() == 3 && t.ne[1] == 1) t.ne.erase(t.ne.begin() + 1);
  const bool is_matrix = is_taps || t.name.ends_with(".weight");
  const std::size_t rank = is_matrix ? 2 : 1;
  if (t.ne.size() != rank)
    return bad_data(
        fmt::format("tensor {} has {} dimensions; expected {}", quote(theirs), t.ne.size(), rank));
  const uint64_t found = head_order.columns || !is_matrix ? t.ne[0] : t.ne[1];
  const uint64_t expected =
      head_order.first + head_order.groups * head_order.in_group * head_order.width;
  if (found != expected)
    return bad_data(fmt::format(
        "tensor {} has {} {}, but the heads in config.json ask for {}; the file is damaged or of "
        "another model",
        quote(theirs), found, head_order.columns ? "columns" : "rows", expected));
  if (is_matrix && !is_taps) {
    t.head_order = head_order;  // too large to copy
    return {};
  }
  std::vector<float> numbers = hf::numbers_of(t);
  const uint64_t row = is_taps ? t.ne[0] : 1;
  if (numbers.size() != found * row)
    return bad_data(fmt::format("tensor {} has {} numbers; expected {}", quote(theirs),
                                numbers.size(), found * row));
  if (t.name.ends_with(".ssm_a"))
    for (float& x : numbers) x = -std::exp(x);
  hf::replace(t, reordered(numbers, head_order, row));
  return {};
}

constexpr std::array qwen35_names = {
    hf::tensor_name{"post_attention_layernorm.weight", "post_attention_norm.weight", false, false},
    hf::tensor_name{"linear_attn.in_proj_qkv", "attn_qkv", true, false},
    hf::tensor_name{"linear_attn.in_proj_z", "attn_gate", true, false},
    hf::tensor_name{"linear_attn.in_proj_a", "ssm_alpha", true, false},
    hf::tensor_name{"linear_attn.in_proj_b", "ssm_beta", true, false},
    hf::tensor_name{"linear_attn.out_proj", "ssm_out", true, false},
    hf::tensor_name{"linear_attn.conv1d.weight", "ssm_conv1d.weight", false, false},
    hf::tensor_name{"linear_attn.A_log", "ssm_a", false, false},
    hf::tensor_name{"linear_attn.dt_bias", "ssm_dt.bias", false, false},
    hf::tensor_name{"linear_attn.norm.weight", "ssm_norm.weight", false, false},
};

// Prefixes of tensors that predict further tokens or see images: not in the graph of a text.
constexpr std::array<std::string_view, 2> qwen35_ignored = {"mtp.", "model.visual."};

constexpr hf::checkpoint_form qwen35_form = {.model_type = "qwen3_5_text",
                                             .read = qwen35_checkpoint,
                                             .put = put_states,
                                             .adjust = turn_heads,
                                             .names = qwen35_names,
                                             .ignored = qwen35_ignored};

}  // namespace

constinit const architecture rows::qwen35 = {.name = "qwen35",
                                             .read = read_qwen35,
                                             .weights = qwen35_weights,
                                             .layer = qwen35_layer,
                                             .checkpoint = &qwen35_form};

}  // namespace bitnet::model
