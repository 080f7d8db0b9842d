#include "huggingface/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gguf/mapping.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"
#include "gguf/writer.hpp"
#include "huggingface/rope.hpp"
#include "huggingface/safetensors.hpp"
#include "huggingface/tokenizer_json.hpp"

namespace bitnet::huggingface {
namespace {

namespace fs = std::filesystem;
using gguf::quote;
using gguf::say;
using nlohmann::json;

std::unexpected<failure> bad(std::string message) {
  return fail(BITNET_BAD_DATA, std::move(message));
}

result<json> read_json(const fs::path& folder, const char* name) {
  auto mapped = gguf::mapping::open(folder / name);
  if (!mapped) return pass_on(std::move(mapped), name);
  const char* at = reinterpret_cast<const char*>(mapped->bytes().data());
  json content = json::parse(at, at + mapped->bytes().size(), nullptr, false);
  if (!content.is_object()) return bad(say(name, " is no JSON object"));
  return content;
}

// A file that a checkpoint may do without.
result<json> read_optional(const fs::path& folder, const char* name) {
  std::error_code ignored;
  if (!fs::exists(folder / name, ignored)) return json::object();
  return read_json(folder, name);
}

// ---- config.json
// ------------------------------------------------------------------------------------

enum class linear_kind : uint8_t { plain, packed, packed_inverse, master };

struct config {
  std::string architecture;  // of GGUF
  linear_kind linear = linear_kind::plain;
  uint64_t n_layers = 0, n_heads = 0, n_kv_heads = 0, n_vocab = 0;
  bool tied = false;
  bool rotates_neighbours = false;  // GGUF's llama; its Q and K rows are reordered
};

const json& at(const json& object, const char* key) {
  static const json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::string text_at(const json& object, const char* key) {
  const json& x = at(object, key);
  return x.is_string() ? x.get<std::string>() : "";
}

std::optional<uint32_t> count_at(const json& object, const char* key) {
  const json& x = at(object, key);
  if (!x.is_number_unsigned() || x.get<uint64_t>() > UINT32_MAX) return std::nullopt;
  return x.get<uint32_t>();
}

std::optional<float> number_at(const json& object, const char* key) {
  const json& x = at(object, key);
  if (!x.is_number()) return std::nullopt;
  return x.get<float>();
}

result<uint32_t> needed(const json& c, const char* key) {
  const auto n = count_at(c, key);
  if (!n) return bad(say("config.json: expected a count under ", quote(key)));
  return *n;
}

// How the linear layers are kept. formats.md 8.2.
result<linear_kind> linear_kind_of(const json& c, bool is_bitnet) {
  const json& q = at(c, "quantization_config");
  if (!q.is_object()) return is_bitnet ? linear_kind::master : linear_kind::plain;
  if (const std::string method = text_at(q, "quant_method"); method != "bitnet")
    return fail(BITNET_UNSUPPORTED, say("config.json: quant_method is ", quote(method),
                                        "; this program reads 'bitnet'"));
  const json& norm = at(q, "use_rms_norm");
  if (norm.is_boolean() && norm.get<bool>())
    return fail(BITNET_UNSUPPORTED,
                "config.json: use_rms_norm asks for a norm inside each linear layer, which this "
                "program does not compute");
  const std::string kind = text_at(q, "linear_class");
  if (kind.empty() || kind == "bitlinear") return linear_kind::packed_inverse;
  if (kind != "autobitlinear")
    return fail(BITNET_UNSUPPORTED, say("config.json: linear_class is ", quote(kind),
                                        "; this program reads 'bitlinear' and 'autobitlinear'"));
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

result<rope_config> read_rope(const json& c, uint32_t head_dim) {
  // Newer files keep all of it in rope_parameters.
  const json& parameters = at(c, "rope_parameters");
  const json& scaling = parameters.is_object() ? parameters : at(c, "rope_scaling");
  for (const json& one : scaling)
    if (one.is_object())
      return fail(BITNET_UNSUPPORTED,
                  "config.json: RoPE differs between kinds of layers, which this program does not "
                  "support");
  for (const json* place : {&c, &scaling})
    if (const auto share = number_at(*place, "partial_rotary_factor"); share && *share != 1)
      return fail(BITNET_UNSUPPORTED,
                  "config.json: partial_rotary_factor is not 1; this program reads "
                  "checkpoints that rotate whole heads");
  if (const json& x = at(scaling, "truncate"); x.is_boolean() && !x.get<bool>())
    return fail(BITNET_UNSUPPORTED,
                "config.json: truncate of RoPE scaling is false, which this program does not "
                "compute");
  rope_config to{.kind = text_at(scaling, "rope_type"), .head_dim = head_dim};
  if (to.kind.empty()) to.kind = text_at(scaling, "type");
  to.theta = number_at(parameters, "rope_theta")
                 .or_else([&] { return number_at(c, "rope_theta"); })
                 .value_or(to.theta);
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

result<config> read_config(const json& c, const std::string& tokenizer, gguf::metadata_builder& out,
                           std::vector<gguf::file::foreign_tensor>& made) {
  const std::string type = text_at(c, "model_type");
  const std::string act = text_at(c, "hidden_act");
  config to;
  const bool is_bitnet = type == "bitnet";
  if (!is_bitnet && type != "llama")
    return fail(BITNET_UNSUPPORTED, say("config.json: model_type is ", quote(type),
                                        "; this program runs 'bitnet' and 'llama'"));
  if (act != "silu" && !(is_bitnet && act == "relu2"))
    return fail(BITNET_UNSUPPORTED, say("config.json: hidden_act is ", quote(act), "; expected ",
                                        is_bitnet ? "'relu2' or 'silu'" : "'silu'"));
  // Each name says the activation, given the tokenizer; formats.md 12.4.
  to.architecture = !is_bitnet            ? "llama"
                    : act == "silu"       ? "bitnet"
                    : tokenizer == "gpt2" ? "bitnet-b1.58"
                                          : "bitnet-25";
  to.rotates_neighbours = !is_bitnet;
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (const json& x = at(c, key); x.is_boolean() && x.get<bool>())
      return fail(BITNET_UNSUPPORTED,
                  say("config.json: ", key, " is true; this program computes no biases"));
  auto kind = linear_kind_of(c, is_bitnet);
  if (!kind) return std::unexpected(kind.error());
  to.linear = *kind;

  const std::string prefix = to.architecture + ".";
  out.text("general.architecture", to.architecture);
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
  if (const auto head = count_at(c, "head_dim")) {
    out.u32(prefix + "attention.key_length", *head);
    out.u32(prefix + "attention.value_length", *head);
    out.u32(prefix + "rope.dimension_count", *head);
  }
  const auto epsilon = number_at(c, "rms_norm_eps");
  if (!epsilon) return bad("config.json: expected a number under 'rms_norm_eps'");
  out.f32(prefix + "attention.layer_norm_rms_epsilon", *epsilon);
  const uint64_t head_dim =
      count_at(c, "head_dim").value_or(to.n_heads == 0 ? 0 : n_embedding / to.n_heads);
  const auto rope = read_rope(c, static_cast<uint32_t>(head_dim));
  if (!rope) return std::unexpected(rope.error());
  if (auto ok = put_rope(*rope, prefix, out, made); !ok) return std::unexpected(ok.error());
  const json& tied = at(c, "tie_word_embeddings");
  // transformers' own default.
  to.tied = tied.is_boolean() ? tied.get<bool>() : false;
  return to;
}

// ---- tokenizer files
// --------------------------------------------------------------------------------

// "<s>", or {"content": "<s>", ...}
std::string token_text(const json& object, const char* key) {
  const json& x = at(object, key);
  return x.is_string() ? x.get<std::string>() : text_at(x, "content");
}

// A number, or the first of a list of them.
std::optional<uint32_t> token_id(const json& object, const char* key) {
  const json& x = at(object, key);
  if (x.is_array() && !x.empty() && x[0].is_number_unsigned()) return x[0].get<uint32_t>();
  return count_at(object, key);
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

// ---- tensors
// ----------------------------------------------------------------------------------------

struct part {
  std::string_view theirs, ours;
  bool linear, rotates;
};
constexpr std::array parts = {
    part{"input_layernorm.weight", "attn_norm.weight", false, false},
    part{"self_attn.q_proj", "attn_q", true, true},
    part{"self_attn.k_proj", "attn_k", true, true},
    part{"self_attn.v_proj", "attn_v", true, false},
    part{"self_attn.o_proj", "attn_output", true, false},
    part{"self_attn.attn_sub_norm.weight", "attn_sub_norm.weight", false, false},
    part{"self_attn.inner_attn_ln.weight", "attn_sub_norm.weight", false, false},  // 1bitLLM
    part{"post_attention_layernorm.weight", "ffn_norm.weight", false, false},
    part{"mlp.gate_proj", "ffn_gate", true, false},
    part{"mlp.up_proj", "ffn_up", true, false},
    part{"mlp.down_proj", "ffn_down", true, false},
    part{"mlp.ffn_sub_norm.weight", "ffn_sub_norm.weight", false, false},
    part{"mlp.ffn_layernorm.weight", "ffn_sub_norm.weight", false, false},  // 1bitLLM
};

struct place {
  std::string name;  // of GGUF; "" for what is not needed
  bool linear = false, rotates = false;
};

std::optional<place> place_of(const std::string& theirs, const config& c) {
  if (theirs == "model.embed_tokens.weight") return place{"token_embd.weight"};
  if (theirs == "model.norm.weight") return place{"output_norm.weight"};
  if (theirs == "lm_head.weight") return place{c.tied ? "" : "output.weight"};
  if (theirs.ends_with("rotary_emb.inv_freq")) return place{""};  // follows from rope_theta
  constexpr std::string_view layers = "model.layers.";
  if (!theirs.starts_with(layers)) return std::nullopt;
  const size_t dot = theirs.find('.', layers.size());
  if (dot == std::string::npos) return std::nullopt;
  const std::string number = theirs.substr(layers.size(), dot - layers.size());
  const std::string_view rest = std::string_view(theirs).substr(dot + 1);
  for (const part& p : parts) {
    if (!p.linear && rest == p.theirs) return place{say("blk.", number, ".", p.ours)};
    if (p.linear && rest.starts_with(p.theirs))
      if (const auto tail = rest.substr(p.theirs.size());
          tail == ".weight" || tail == ".weight_scale")
        return place{say("blk.", number, ".", p.ours, tail), tail == ".weight", p.rotates};
  }
  return std::nullopt;
}

std::optional<uint32_t> real_type(const std::string& dtype) {
  if (dtype == "F32") return gguf::type::f32;
  if (dtype == "F16") return gguf::type::f16;
  if (dtype == "BF16") return gguf::type::bf16;
  return std::nullopt;
}

uint32_t master_of(uint32_t real) {
  if (real == gguf::type::f32) return gguf::type::hf_master_f32;
  return real == gguf::type::f16 ? gguf::type::hf_master_f16 : gguf::type::hf_master_bf16;
}

result<std::optional<gguf::file::foreign_tensor>> take(const stored_tensor& t, const config& c) {
  const auto where = place_of(t.name, c);
  if (!where)
    return fail(BITNET_UNSUPPORTED,
                say("tensor ", quote(t.name), " has no place in the graph of a ", c.architecture,
                    " model; computing without it would give wrong text"));
  if (where->name.empty()) return std::nullopt;
  gguf::file::foreign_tensor out{
      .name = where->name, .ne = {t.shape.rbegin(), t.shape.rend()}, .bytes = t.bytes};
  if (out.ne.empty()) out.ne = {1};
  const auto real = real_type(t.dtype);
  if (where->linear && t.shape.size() != 2)
    return bad(say("tensor ", quote(t.name), " has ", t.shape.size(), " dimensions; expected 2"));
  if (t.dtype == "U8" && where->linear) {
    if (c.linear != linear_kind::packed && c.linear != linear_kind::packed_inverse)
      return bad(say("tensor ", quote(t.name),
                     " is packed, but quantization_config of config.json does not say how"));
    out.type =
        c.linear == linear_kind::packed ? gguf::type::hf_packed : gguf::type::hf_packed_inverse;
    out.ne[1] *= 4;
  } else if (real) {
    out.type = where->linear && c.linear == linear_kind::master ? master_of(*real) : *real;
  } else {
    return fail(BITNET_UNSUPPORTED, say("tensor ", quote(t.name), " is of type ", t.dtype,
                                        "; expected F32, F16 or BF16, or packed U8"));
  }
  if (where->rotates && c.rotates_neighbours) {
    const uint64_t heads = where->name.ends_with("attn_q.weight") ? c.n_heads : c.n_kv_heads;
    if (heads == 0 || out.ne[1] % (2 * heads) != 0)
      return bad(say("tensor ", quote(t.name), " has ", out.ne[1], " rows for ", heads, " heads"));
    out.rotated_heads = heads;
  }
  return out;
}

// The files that hold tensors, by the index if there is one.
result<std::vector<std::string>> weight_files(const fs::path& folder) {
  std::error_code ignored;
  constexpr const char* index = "model.safetensors.index.json";
  if (!fs::exists(folder / index, ignored)) return std::vector<std::string>{"model.safetensors"};
  const auto content = read_json(folder, index);
  if (!content) return std::unexpected(content.error());
  std::set<std::string> names;
  const json& map = at(*content, "weight_map");
  if (!map.is_object() || map.empty()) return bad(say(index, ": expected an object 'weight_map'"));
  for (const json& name : map) {
    const std::string file = name.is_string() ? name.get<std::string>() : "";
    if (file.empty() || file.find('/') != std::string::npos || file == "." || file == "..")
      return bad(say(index, " names ", quote(file), ", which is no file of the folder"));
    names.insert(file);
  }
  return std::vector<std::string>{names.begin(), names.end()};
}

result<gguf::file> open_folder(const fs::path& folder) {
  const auto c = read_json(folder, "config.json");
  if (!c) return std::unexpected(c.error());
  const auto t = read_optional(folder, "tokenizer_config.json");
  if (!t) return std::unexpected(t.error());
  auto tokenizer = gguf::mapping::open(folder / "tokenizer.json");
  if (!tokenizer) return pass_on(std::move(tokenizer), "tokenizer.json");
  gguf::metadata_builder metadata;
  const std::string_view text(reinterpret_cast<const char*>(tokenizer->bytes().data()),
                              tokenizer->bytes().size());
  const auto kind = read_tokenizer(text, hints_of(*c, *t), metadata);
  if (!kind) return std::unexpected(kind.error());
  std::vector<gguf::file::foreign_tensor> tensors;
  const auto about = read_config(*c, *kind, metadata, tensors);
  if (!about) return std::unexpected(about.error());
  auto name = fs::absolute(folder).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  metadata.text("general.name", name.filename().native());

  const auto files = weight_files(folder);
  if (!files) return std::unexpected(files.error());
  std::vector<gguf::mapping> mappings;
  for (const std::string& file : *files) {
    auto mapped = gguf::mapping::open(folder / file);
    if (!mapped) return pass_on(std::move(mapped), file);
    auto table = read_safetensors(mapped->bytes());
    if (!table) return pass_on(std::move(table), file);
    for (const stored_tensor& one : *table) {
      auto taken = take(one, *about);
      if (!taken) return pass_on(std::move(taken), file);
      if (std::optional<gguf::file::foreign_tensor>& kept = *taken)
        tensors.push_back(*std::move(kept));
    }
    mappings.push_back(std::move(*mapped));
  }
  return gguf::file::compose(gguf::header_of(metadata, {}), std::move(mappings),
                             std::move(tensors));
}

}  // namespace

bool is_checkpoint(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && fs::exists(path / "config.json", ignored);
}

result<gguf::file> open(const fs::path& folder) {
  auto opened = open_folder(folder);
  if (!opened) return pass_on(std::move(opened), quote(folder.native()));
  return opened;
}

}  // namespace bitnet::huggingface
