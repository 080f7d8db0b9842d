#include "huggingface/checkpoint.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/floats.hpp"
#include "gguf/bytes.hpp"
#include "gguf/mapping.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"
#include "gguf/writer.hpp"
#include "huggingface/config.hpp"
#include "huggingface/safetensors.hpp"
#include "huggingface/tokenizer_json.hpp"

namespace bitnet::huggingface {
namespace {

namespace fs = std::filesystem;
using gguf::quote;
using nlohmann::json;

result<json> read_json(const fs::path& folder, const char* name) {
  auto mapped = gguf::mapping::open(folder / name);
  if (!mapped) return pass_on(std::move(mapped), name);
  auto out = parse_object(
      {reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()}, name);
  if (auto ok = mapped->check_size(); !ok) return std::unexpected(ok.error());
  return out;
}

// A file that a checkpoint may do without.
result<json> read_optional(const fs::path& folder, const char* name) {
  std::error_code ignored;
  if (!fs::exists(folder / name, ignored)) return json::object();
  return read_json(folder, name);
}

// ---- tensors ------------------------------------------------------------------------------------

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
    part{"self_attn.q_norm.weight", "attn_q_norm.weight", false, false},
    part{"self_attn.k_norm.weight", "attn_k_norm.weight", false, false},
    part{"post_attention_layernorm.weight", "ffn_norm.weight", false, false},
    part{"mlp.gate_proj", "ffn_gate", true, false},
    part{"mlp.up_proj", "ffn_up", true, false},
    part{"mlp.down_proj", "ffn_down", true, false},
    part{"mlp.ffn_sub_norm.weight", "ffn_sub_norm.weight", false, false},
    part{"mlp.ffn_layernorm.weight", "ffn_sub_norm.weight", false, false},  // 1bitLLM
};

// Names that mean something else in Gemma, or nothing elsewhere.
constexpr std::array gemma_parts = {
    part{"post_attention_layernorm.weight", "post_attention_norm.weight", false, false},
    part{"pre_feedforward_layernorm.weight", "ffn_norm.weight", false, false},
    part{"post_feedforward_layernorm.weight", "post_ffw_norm.weight", false, false},
};

// Those of qwen35, and of its layers that keep a state.
constexpr std::array hybrid_parts = {
    part{"post_attention_layernorm.weight", "post_attention_norm.weight", false, false},
    part{"linear_attn.in_proj_qkv", "attn_qkv", true, false},
    part{"linear_attn.in_proj_z", "attn_gate", true, false},
    part{"linear_attn.in_proj_a", "ssm_alpha", true, false},
    part{"linear_attn.in_proj_b", "ssm_beta", true, false},
    part{"linear_attn.out_proj", "ssm_out", true, false},
    part{"linear_attn.conv1d.weight", "ssm_conv1d.weight", false, false},
    part{"linear_attn.A_log", "ssm_a", false, false},
    part{"linear_attn.dt_bias", "ssm_dt.bias", false, false},
    part{"linear_attn.norm.weight", "ssm_norm.weight", false, false},
};

struct place {
  std::string name;  // of GGUF; "" for what is not needed
  bool linear = false, rotates = false;
};

std::optional<place> place_in(std::span<const part> all, std::string_view number,
                              std::string_view rest) {
  for (const part& p : all) {
    if (!p.linear && rest == p.theirs) return place{fmt::format("blk.{}.{}", number, p.ours)};
    if (p.linear && rest.starts_with(p.theirs))
      if (const auto tail = rest.substr(p.theirs.size());
          tail == ".weight" || tail == ".weight_scale")
        return place{fmt::format("blk.{}.{}{}", number, p.ours, tail), tail == ".weight",
                     p.rotates};
  }
  return std::nullopt;
}

std::optional<place> place_of(const std::string& theirs, const config& c) {
  if (theirs == "model.embed_tokens.weight") return place{"token_embd.weight"};
  if (theirs == "model.norm.weight") return place{"output_norm.weight"};
  if (theirs == "lm_head.weight") return place{c.tied ? "" : "output.weight"};
  if (theirs.ends_with("rotary_emb.inv_freq")) return place{""};  // follows from rope_theta
  const bool hybrid = c.states.keys != 0;
  // Layers that predict further tokens, and what sees images: no part of the graph of a text.
  if (hybrid && (theirs.starts_with("mtp.") || theirs.starts_with("model.visual.")))
    return place{""};
  constexpr std::string_view layers = "model.layers.";
  if (!theirs.starts_with(layers)) return std::nullopt;
  const size_t dot = theirs.find('.', layers.size());
  if (dot == std::string::npos) return std::nullopt;
  const std::string number = theirs.substr(layers.size(), dot - layers.size());
  const std::string_view rest = std::string_view(theirs).substr(dot + 1);
  std::optional<place> own;
  if (c.gemma) own = place_in(gemma_parts, number, rest);
  if (hybrid) own = place_in(hybrid_parts, number, rest);
  return own ? own : place_in(parts, number, rest);
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

std::vector<float> numbers_of(const gguf::file::foreign_tensor& t) {
  const std::size_t width = t.type == gguf::type::f32 ? 4 : 2;
  std::vector<float> out;
  out.reserve(t.bytes.size() / width);
  for (auto rest = t.bytes; rest.size() >= width; rest = rest.subspan(width))
    out.push_back(t.type == gguf::type::f32   ? gguf::load<float>(rest)
                  : t.type == gguf::type::f16 ? from_f16(gguf::load<uint16_t>(rest))
                                              : from_bf16(gguf::load<uint16_t>(rest)));
  return out;
}

void replace(gguf::file::foreign_tensor& t, std::vector<float> numbers) {
  auto made = std::make_shared<std::vector<float>>(std::move(numbers));
  t.type = gguf::type::f32;
  t.bytes = std::as_bytes(std::span(*made));
  t.keeps = std::move(made);
}

// GGUF has the factors themselves.
void add_one(gguf::file::foreign_tensor& norm) {
  std::vector<float> factors = numbers_of(norm);
  for (float& x : factors) x += 1;
  replace(norm, std::move(factors));
}

// How the value heads in a tensor are to be reordered: GGUF has the first of each key head, then
// the second of each, ... Groups of 0 if there are none in it.
gguf::head_turns turns_of(std::string_view ours, const state_heads& h) {
  gguf::head_turns to{.groups = h.keys, .in_group = h.in_group, .width = 1};
  if (ours.ends_with(".ssm_alpha.weight") || ours.ends_with(".ssm_beta.weight") ||
      ours.ends_with(".ssm_a") || ours.ends_with(".ssm_dt.bias"))
    return to;
  to.width = h.value_size;
  if (ours.ends_with(".attn_gate.weight")) return to;
  to.first = 2 * h.keys * h.key_size;
  if (ours.ends_with(".attn_qkv.weight") || ours.ends_with(".ssm_conv1d.weight")) return to;
  to.first = 0;
  to.columns = true;
  return ours.ends_with(".ssm_out.weight") ? to : gguf::head_turns{};
}

// Rows of a small tensor, or the elements of a vector, in the order that is wanted.
std::vector<float> in_turn(const std::vector<float>& stored, const gguf::head_turns& t,
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
                        const state_heads& h) {
  const gguf::head_turns turns = turns_of(t.name, h);
  if (turns.groups == 0) return {};
  const bool is_taps = t.name.ends_with(".ssm_conv1d.weight");
  if (is_taps && t.ne.size() == 3 && t.ne[1] == 1) t.ne.erase(t.ne.begin() + 1);
  const bool is_matrix = is_taps || t.name.ends_with(".weight");
  const std::size_t rank = is_matrix ? 2 : 1;
  if (t.ne.size() != rank)
    return bad_data(
        fmt::format("tensor {} has {} dimensions; expected {}", quote(theirs), t.ne.size(), rank));
  const uint64_t found = turns.columns || !is_matrix ? t.ne[0] : t.ne[1];
  const uint64_t expected = turns.first + turns.groups * turns.in_group * turns.width;
  if (found != expected)
    return bad_data(fmt::format(
        "tensor {} has {} {}, but the heads in config.json ask for {}; the file is damaged or of "
        "another model",
        quote(theirs), found, turns.columns ? "columns" : "rows", expected));
  if (is_matrix && !is_taps) {
    t.turns = turns;  // too large for a copy
    return {};
  }
  std::vector<float> numbers = numbers_of(t);
  const uint64_t row = is_taps ? t.ne[0] : 1;
  if (numbers.size() != found * row)
    return bad_data(fmt::format("tensor {} has {} numbers; expected {}", quote(theirs),
                                numbers.size(), found * row));
  if (t.name.ends_with(".ssm_a"))
    for (float& x : numbers) x = -std::exp(x);
  replace(t, in_turn(numbers, turns, row));
  return {};
}

result<std::optional<gguf::file::foreign_tensor>> take(const stored_tensor& t, const config& c) {
  const auto where = place_of(t.name, c);
  if (!where)
    return fail(BITNET_UNSUPPORTED, fmt::format("tensor {} has no place in the graph of a {} "
                                                "model; computing without it would give wrong text",
                                                quote(t.name), c.architecture));
  if (where->name.empty()) return std::nullopt;
  gguf::file::foreign_tensor out{
      .name = where->name, .ne = {t.shape.rbegin(), t.shape.rend()}, .bytes = t.bytes};
  if (out.ne.empty()) out.ne = {1};
  const auto real = real_type(t.dtype);
  if (where->linear && t.shape.size() != 2)
    return bad_data(
        fmt::format("tensor {} has {} dimensions; expected 2", quote(t.name), t.shape.size()));
  if (t.dtype == "U8" && where->linear) {
    if (c.linear != linear_kind::packed && c.linear != linear_kind::packed_inverse)
      return bad_data(fmt::format(
          "tensor {} is packed, but quantization_config of config.json does not say how",
          quote(t.name)));
    out.type =
        c.linear == linear_kind::packed ? gguf::type::hf_packed : gguf::type::hf_packed_inverse;
    out.ne[1] *= 4;
  } else if (real) {
    out.type = where->linear && c.linear == linear_kind::master ? master_of(*real) : *real;
  } else {
    return fail(BITNET_UNSUPPORTED,
                fmt::format("tensor {} is of type {}; expected F32, F16 or BF16, or packed U8",
                            quote(t.name), t.dtype));
  }
  if (c.norms_above_one && where->name.ends_with("norm.weight") &&
      !where->name.ends_with(".ssm_norm.weight"))
    add_one(out);
  if (c.states.keys != 0)
    if (auto ok = turn_heads(out, t.name, c.states); !ok) return std::unexpected(ok.error());
  if (where->rotates && c.rotates_neighbours) {
    const uint64_t heads = where->name.ends_with("attn_q.weight") ? c.n_heads : c.n_kv_heads;
    if (heads == 0 || out.ne[1] % (2 * heads) != 0)
      return bad_data(
          fmt::format("tensor {} has {} rows for {} heads", quote(t.name), out.ne[1], heads));
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
  return files_of_index(*content, index);
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
  if (auto ok = tokenizer->check_size(); !ok) return std::unexpected(ok.error());
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
