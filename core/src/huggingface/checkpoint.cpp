#include "huggingface/checkpoint.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gguf/mapping.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"
#include "gguf/writer.hpp"
#include "huggingface/config.hpp"
#include "huggingface/config_reading.hpp"
#include "huggingface/folder.hpp"
#include "huggingface/numbers.hpp"
#include "huggingface/safetensors.hpp"
#include "huggingface/tokenizer_json.hpp"

namespace bitnet::huggingface {
namespace {

namespace fs = std::filesystem;
using gguf::quote;
using nlohmann::json;

result<json> read_json(const fs::path& folder, const char* name) {
  auto mapped = open_member(folder, name);
  if (!mapped) return std::unexpected(mapped.error());
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

constexpr std::array common_names = {
    tensor_name{"input_layernorm.weight", "attn_norm.weight", false, false},
    tensor_name{"self_attn.q_proj", "attn_q", true, true},
    tensor_name{"self_attn.k_proj", "attn_k", true, true},
    tensor_name{"self_attn.v_proj", "attn_v", true, false},
    tensor_name{"self_attn.o_proj", "attn_output", true, false},
    tensor_name{"self_attn.attn_sub_norm.weight", "attn_sub_norm.weight", false, false},
    tensor_name{"self_attn.inner_attn_ln.weight", "attn_sub_norm.weight", false, false},  // 1bitLLM
    tensor_name{"self_attn.q_norm.weight", "attn_q_norm.weight", false, false},
    tensor_name{"self_attn.k_norm.weight", "attn_k_norm.weight", false, false},
    tensor_name{"post_attention_layernorm.weight", "ffn_norm.weight", false, false},
    tensor_name{"mlp.gate_proj", "ffn_gate", true, false},
    tensor_name{"mlp.up_proj", "ffn_up", true, false},
    tensor_name{"mlp.down_proj", "ffn_down", true, false},
    tensor_name{"mlp.ffn_sub_norm.weight", "ffn_sub_norm.weight", false, false},
    tensor_name{"mlp.ffn_layernorm.weight", "ffn_sub_norm.weight", false, false},  // 1bitLLM
};

struct place {
  std::string name;  // of GGUF; "" for what is not needed
  bool linear = false, rotates = false;
};

std::optional<place> place_in(std::span<const tensor_name> all, std::string_view number,
                              std::string_view rest) {
  for (const tensor_name& p : all) {
    if (!p.linear && rest == p.theirs) return place{fmt::format("blk.{}.{}", number, p.ours)};
    if (p.linear && rest.starts_with(p.theirs))
      if (const auto tail = rest.substr(p.theirs.size());
          tail == ".weight" || tail == ".weight_scale")
        return place{fmt::format("blk.{}.{}{}", number, p.ours, tail), tail == ".weight",
                     p.rotates};
  }
  return std::nullopt;
}

bool is_passed_over(std::string_view theirs, const config& c) {
  return std::ranges::any_of(c.form->ignored,
                             [&](std::string_view with) { return theirs.starts_with(with); });
}

std::optional<place> place_of(const std::string& theirs, const config& c) {
  if (theirs == "model.embed_tokens.weight") return place{"token_embd.weight"};
  if (theirs == "model.norm.weight") return place{"output_norm.weight"};
  if (theirs == "lm_head.weight") return place{c.tied ? "" : "output.weight"};
  if (theirs.ends_with("rotary_emb.inv_freq")) return place{""};  // follows from rope_theta
  if (is_passed_over(theirs, c)) return place{""};
  constexpr std::string_view layers = "model.layers.";
  if (!theirs.starts_with(layers)) return std::nullopt;
  const size_t dot = theirs.find('.', layers.size());
  if (dot == std::string::npos) return std::nullopt;
  const std::string number = theirs.substr(layers.size(), dot - layers.size());
  const std::string_view rest = std::string_view(theirs).substr(dot + 1);
  const auto own = place_in(c.form->names, number, rest);
  return own ? own : place_in(common_names, number, rest);
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

// GGUF has the factors themselves.
void add_one(gguf::file::foreign_tensor& norm) {
  std::vector<float> factors = numbers_of(norm);
  for (float& x : factors) x += 1;
  replace(norm, std::move(factors));
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
  if (c.form->adjust != nullptr)
    if (auto ok = c.form->adjust(out, t.name, c); !ok) return std::unexpected(ok.error());
  if (where->rotates && c.rotates_neighbours) {
    const uint64_t heads = where->name.ends_with("attn_q.weight") ? c.n_heads : c.n_kv_heads;
    if (heads == 0 || out.ne[1] % (2 * heads) != 0)
      return bad_data(
          fmt::format("tensor {} has {} rows for {} heads", quote(t.name), out.ne[1], heads));
    out.rotated_heads = heads;
  }
  return out;
}

constexpr const char* index_name = "model.safetensors.index.json";

// The files that hold tensors, by the index; none: there is no index.
result<std::vector<std::string>> files_by_index(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / index_name, ignored)) return std::vector<std::string>();
  const auto content = read_json(folder, index_name);
  if (!content) return std::unexpected(content.error());
  return files_of_index(*content, index_name);
}

struct weight_file {
  std::string name;
  gguf::mapping content;
};

result<std::vector<weight_file>> open_weight_files(const fs::path& folder) {
  const auto names = files_by_index(folder);
  if (!names) return std::unexpected(names.error());
  std::vector<weight_file> out;
  if (names->empty()) {
    auto whole = open_weights(folder);
    if (!whole) return std::unexpected(whole.error());
    out.push_back({"model.safetensors", std::move(*whole)});
  }
  for (std::size_t i = 0; i < names->size(); ++i) {
    auto shard = open_member(folder, (*names)[i],
                             fmt::format("file {} of {} in {}", i + 1, names->size(), index_name));
    if (!shard) return std::unexpected(shard.error());
    out.push_back({(*names)[i], std::move(*shard)});
  }
  return out;
}

result<gguf::file> open_folder(const fs::path& folder, forms known) {
  const auto c = read_json(folder, "config.json");
  if (!c) return std::unexpected(c.error());
  if (const auto form = form_of(*c, known); !form) return std::unexpected(form.error());
  // Before the tokenizer, which would be too large for a vocabulary of unknown size.
  if (const auto n = needed(*c, "vocab_size"); !n) return std::unexpected(n.error());
  const auto t = read_optional(folder, "tokenizer_config.json");
  if (!t) return std::unexpected(t.error());
  auto tokenizer = open_tokenizer(folder);
  if (!tokenizer) return std::unexpected(tokenizer.error());
  gguf::metadata_builder metadata;
  const std::string_view text(reinterpret_cast<const char*>(tokenizer->bytes().data()),
                              tokenizer->bytes().size());
  const auto kind = read_tokenizer(text, hints_of(*c, *t), metadata);
  if (auto ok = tokenizer->check_size(); !ok) return std::unexpected(ok.error());
  if (!kind) return std::unexpected(kind.error());
  std::vector<gguf::file::foreign_tensor> tensors;
  const auto about = read_config(*c, *kind, known, metadata, tensors);
  if (!about) return std::unexpected(about.error());
  auto name = fs::absolute(folder).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  metadata.text("general.name", name.filename().native());

  auto files = open_weight_files(folder);
  if (!files) return std::unexpected(files.error());
  std::vector<gguf::mapping> mappings;
  std::vector<std::string> passed_over;
  for (auto& [file, content] : *files) {
    auto table = read_safetensors(content.bytes());
    if (!table) return pass_on(std::move(table), file);
    for (const stored_tensor& one : *table) {
      if (is_passed_over(one.name, *about)) passed_over.emplace_back(one.name);
      auto taken = take(one, *about);
      if (!taken) return pass_on(std::move(taken), file);
      if (std::optional<gguf::file::foreign_tensor>& kept = *taken)
        tensors.push_back(*std::move(kept));
    }
    mappings.push_back(std::move(content));
  }
  std::ranges::sort(passed_over);
  return gguf::file::compose(gguf::header_of(metadata, {}), std::move(mappings), std::move(tensors),
                             std::move(passed_over));
}

}  // namespace

bool is_checkpoint(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && fs::exists(path / "config.json", ignored);
}

result<gguf::file> open(const fs::path& folder, forms known) {
  auto opened = open_folder(folder, known);
  if (!opened) return pass_on(std::move(opened), quote(folder.native()));
  return opened;
}

}  // namespace bitnet::huggingface
