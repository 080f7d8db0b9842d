#include "huggingface/config.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "gguf/text.hpp"
#include "huggingface/config_reading.hpp"
#include "huggingface/rope.hpp"

namespace bitnet::huggingface {
namespace {

using gguf::quote;
using nlohmann::json;

std::vector<float> numbers_at(const json& object, const char* key) {
  const json& list = at(object, key);
  std::vector<float> out;
  if (!list.is_array()) return out;
  for (const json& x : list)
    if (x.is_number()) out.push_back(x.get<float>());
  return out.size() == list.size() ? out : std::vector<float>();
}

// The rope of layers with full attention; layers with a window may have another base.
result<rope_config> read_rope(const json& c, uint32_t head_dim, const config& about) {
  // Newer files have everything in rope_parameters.
  const json& all = at(c, "rope_parameters");
  const std::string& member = about.rope_member;
  const json& parameters = member.empty() ? all : at(all, member.c_str());
  if (!member.empty() && all.is_object() && !parameters.is_object())
    return bad_data(
        fmt::format("config.json: expected an object {} in rope_parameters", quote(member)));
  const json& scaling = parameters.is_object() ? parameters : at(c, "rope_scaling");
  for (const json& one : scaling)
    if (one.is_object())
      return fail(BITNET_UNSUPPORTED,
                  "config.json: RoPE differs between kinds of layers, which this program does not "
                  "support");
  if (!about.rotates_parts && rotating_share(c, scaling, about.usual_rotating_share) != 1)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: partial_rotary_factor is not 1; this program rotates "
                            "whole heads in models of type {}",
                            quote(about.form->model_type)));
  if (false_at(scaling, "truncate"))
    return fail(BITNET_UNSUPPORTED,
                "config.json: truncate of RoPE scaling is false, which this program does not "
                "compute");
  rope_config to{.kind = text_at(scaling, "rope_type"), .head_dim = head_dim};
  if (to.kind.empty()) to.kind = text_at(scaling, "type");
  if (about.rotates_parts && !to.kind.empty() && to.kind != "default")
    return fail(BITNET_UNSUPPORTED,
                fmt::format("config.json: RoPE scaling of type {} of a part of a head; expected "
                            "'default'",
                            quote(to.kind)));
  to.theta = number_at(parameters, "rope_theta")
                 .or_else([&] { return number_at(c, "rope_theta"); })
                 .value_or(about.usual_theta);
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

// Reads "<s>", or {"content": "<s>", ...}.
std::string token_text(const json& object, const char* key) {
  const json& x = at(object, key);
  return x.is_string() ? x.get<std::string>() : text_at(x, "content");
}

// Reads a number or a list of them; negative ones mean none.
std::vector<uint32_t> token_ids(const json& object, const char* key) {
  const json& x = at(object, key);
  std::vector<uint32_t> out;
  for (const json& one : x.is_array() ? x : json::array({x}))
    if (const auto id = count_of(one)) out.push_back(*id);
  return out;
}

std::optional<uint32_t> token_id(const json& object, const char* key) {
  const auto all = token_ids(object, key);
  return all.empty() ? std::nullopt : std::optional(all.front());
}

// Tokens of the folder's other files that tokenizer.json must have too.
std::vector<std::pair<std::string, uint32_t>> expected_tokens(const tokenizer_files& from) {
  std::vector<std::pair<std::string, uint32_t>> out;
  constexpr uint32_t never = UINT32_MAX;
  for (const auto& [id, one] : at(from.tokenizer_config, "added_tokens_decoder").items()) {
    uint32_t number = never;
    std::from_chars(id.data(), id.data() + id.size(), number);
    out.emplace_back(text_at(one, "content"), number);
  }
  if (from.added_tokens.is_object())
    for (const auto& [text, id] : from.added_tokens.items())
      out.emplace_back(text, count_of(id).value_or(never));
  return out;
}

// Writes the sizes of the model under GGUF's keys. Returns the elements of a head.
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
  to.n_kv_heads = count_at(c, "num_key_value_heads")
                      .value_or(c.contains("num_key_value_heads") ? 0 : to.usual_kv_heads);
  for (auto ok : {count("max_position_embeddings", "context_length", ignored),
                  count("hidden_size", "embedding_length", n_embedding),
                  count("num_hidden_layers", "block_count", to.n_layers),
                  count("intermediate_size", "feed_forward_length", ignored),
                  count("num_attention_heads", "attention.head_count", to.n_heads),
                  count("vocab_size", "vocab_size", to.n_vocab)})
    if (!ok) return std::unexpected(ok.error());
  if (to.n_kv_heads == 0) to.n_kv_heads = to.n_heads;
  out.u32(prefix + "attention.head_count_kv", static_cast<uint32_t>(to.n_kv_heads));
  auto head_dim = count_at(c, "head_dim");
  if (!head_dim && to.usual_head_dim != 0) head_dim = to.usual_head_dim;
  if (head_dim) {
    out.u32(prefix + "attention.key_length", *head_dim);
    out.u32(prefix + "attention.value_length", *head_dim);
    if (!to.rotates_parts) out.u32(prefix + "rope.dimension_count", *head_dim);
  }
  return static_cast<uint32_t>(head_dim.value_or(to.n_heads == 0 ? 0 : n_embedding / to.n_heads));
}

}  // namespace

result<const checkpoint_form*> form_of(const json& c, forms known) {
  const std::string type = model_type_of(c);
  const auto found = std::ranges::find(known, type, &checkpoint_form::model_type);
  if (found != known.end()) return *found;
  std::string names;
  for (const checkpoint_form* form : known) {
    if (form != known.front()) names += form == known.back() ? " and " : ", ";
    names += quote(form->model_type);
  }
  return fail(
      BITNET_UNSUPPORTED,
      fmt::format("config.json: model_type is {}; this program runs {}{}", quote(type), names,
                  at(c, "text_config").is_object()
                      ? "; save its text model by itself with transformers"
                      : ""));
}

result<config> read_config(const json& c, const std::string& tokenizer, forms known,
                           gguf::metadata_builder& out,
                           std::vector<gguf::file::foreign_tensor>& made) {
  const auto form = form_of(c, known);
  if (!form) return std::unexpected(form.error());
  auto to = (*form)->read(c, tokenizer);
  if (!to) return to;
  to->form = *form;
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
  if (to->form->put != nullptr)
    if (auto ok = to->form->put(c, *to, *head_dim, prefix, out); !ok)
      return std::unexpected(ok.error());
  to->tied =
      to->usually_tied ? !false_at(c, "tie_word_embeddings") : true_at(c, "tie_word_embeddings");
  return to;
}

std::string model_type_of(const json& c) {
  std::string type = text_at(c, "model_type");
  const json& classes = at(c, "architectures");
  const auto is_bitnet = [](const json& name) {
    return name == "BitnetForCausalLM" || name == "BitNetForCausalLM";
  };
  if (type == "llama" && classes.is_array() && std::ranges::any_of(classes, is_bitnet))
    return "bitnet";
  return type;
}

tokenizer_hints hints_of(const tokenizer_files& from) {
  const json &c = from.config, &t = from.tokenizer_config;
  // Newer folders have everything in tokenizer_config.json.
  const bool newer = at(t, "added_tokens_decoder").is_object();
  const auto named = [&](const char* key) {
    const std::string older = newer ? "" : token_text(from.special_tokens, key);
    return older.empty() ? token_text(t, key) : older;
  };
  tokenizer_hints hints;
  hints.n_vocab = count_at(c, "vocab_size").value_or(0);
  hints.bos_text = named("bos_token");
  hints.eos_text = named("eos_token");
  hints.padding_text = named("pad_token");
  hints.unknown_text = named("unk_token");
  hints.ends = token_ids(from.generation_config, "eos_token_id");
  if (hints.ends.empty()) hints.ends = token_ids(c, "eos_token_id");
  hints.expected = expected_tokens(from);
  if (hints.bos_text.empty()) hints.bos = token_id(c, "bos_token_id");
  if (hints.eos_text.empty()) hints.eos = token_id(c, "eos_token_id");
  if (hints.padding_text.empty()) hints.padding = token_id(c, "pad_token_id");
  if (const json& x = at(t, "add_bos_token"); x.is_boolean()) hints.add_bos = x.get<bool>();
  if (const json& x = at(t, "add_eos_token"); x.is_boolean()) hints.add_eos = x.get<bool>();
  return hints;
}

result<void> check_tokenizer_config(const json& t, members_left_out& out) {
  constexpr const char* file = "tokenizer_config.json";
  if (true_at(t, "split_special_tokens"))
    return fail(BITNET_UNSUPPORTED,
                fmt::format("{}: split_special_tokens is true; this program keeps special tokens "
                            "whole",
                            file));
  if (true_at(t, "clean_up_tokenization_spaces"))
    out.push_back({file, "clean_up_tokenization_spaces", "text comes back as it was made"});
  return {};
}

result<std::vector<std::string>> files_of_index(const json& index, const char* name) {
  std::set<std::string> names;
  const json& map = at(index, "weight_map");
  if (!map.is_object() || map.empty())
    return bad_data(fmt::format("{}: expected an object 'weight_map'", name));
  for (const json& one : map) {
    const std::string file = one.is_string() ? one.get<std::string>() : "";
    // The system cuts a name at its first zero byte, which gives another name.
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
