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
#include "huggingface/chat_templates.hpp"
#include "huggingface/config.hpp"
#include "huggingface/config_reading.hpp"
#include "huggingface/folder.hpp"
#include "huggingface/json_files.hpp"
#include "huggingface/members.hpp"
#include "huggingface/numbers.hpp"
#include "huggingface/safetensors.hpp"
#include "huggingface/sentence_transformers.hpp"
#include "huggingface/tokenizer_json.hpp"

namespace bitnet::huggingface {
namespace {

namespace fs = std::filesystem;
using gguf::quote;
using nlohmann::json;

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

struct target_tensor {
  std::string name;  // GGUF's name; "": not needed
  bool linear = false, rotates = false;
};

std::optional<target_tensor> target_in(std::span<const tensor_name> all, std::string_view number,
                                       std::string_view rest) {
  for (const tensor_name& p : all) {
    if (!p.linear && rest == p.theirs)
      return target_tensor{fmt::format("blk.{}.{}", number, p.ours)};
    if (p.linear && rest.starts_with(p.theirs))
      if (const auto tail = rest.substr(p.theirs.size());
          tail == ".weight" || tail == ".weight_scale")
        return target_tensor{fmt::format("blk.{}.{}{}", number, p.ours, tail), tail == ".weight",
                             p.rotates};
  }
  return std::nullopt;
}

bool is_passed_over(std::string_view theirs, const config& c) {
  return std::ranges::any_of(c.form->ignored,
                             [&](std::string_view with) { return theirs.starts_with(with); });
}

// Adds the prefix that is missing in a model saved without its head.
std::string whole_name(const std::string& theirs) {
  const bool bare = theirs == "embed_tokens.weight" || theirs == "norm.weight" ||
                    theirs.starts_with("layers.") || theirs.starts_with("rotary_emb.");
  return bare ? "model." + theirs : theirs;
}

std::optional<target_tensor> target_of(const std::string& stored, const config& c) {
  const std::string theirs = whole_name(stored);
  if (theirs == "model.embed_tokens.weight") return target_tensor{"token_embd.weight"};
  if (theirs == "model.norm.weight") return target_tensor{"output_norm.weight"};
  if (theirs == "lm_head.weight") return target_tensor{"output.weight"};
  if (theirs.ends_with("rotary_emb.inv_freq"))
    return target_tensor{""};  // computed from rope_theta
  if (is_passed_over(theirs, c)) return target_tensor{""};
  constexpr std::string_view layers = "model.layers.";
  if (!theirs.starts_with(layers)) return std::nullopt;
  const size_t dot = theirs.find('.', layers.size());
  if (dot == std::string::npos) return std::nullopt;
  const std::string number = theirs.substr(layers.size(), dot - layers.size());
  const std::string_view rest = std::string_view(theirs).substr(dot + 1);
  const auto own = target_in(c.form->names, number, rest);
  return own ? own : target_in(common_names, number, rest);
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

// GGUF stores the factors themselves, not minus 1.
void add_one(gguf::file::foreign_tensor& norm) {
  std::vector<float> factors = numbers_of(norm);
  for (float& x : factors) x += 1;
  replace(norm, std::move(factors));
}

result<std::optional<gguf::file::foreign_tensor>> take(const stored_tensor& t, const config& c) {
  const auto where = target_of(t.name, c);
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

// The files with tensors, by the index; empty: one file has all.
result<std::vector<std::string>> files_by_index(const fs::path& folder, members_left_out& out) {
  constexpr const char* single = "model.safetensors";
  constexpr const char* index = index_name;
  const auto is_there = [&](const std::string& name) {
    std::error_code ignored;
    return fs::exists(folder / name, ignored);
  };
  if (!is_there(index)) return std::vector<std::string>();
  const auto content = read_json(folder, index);
  if (!content) return std::unexpected(content.error());
  if (auto ok = check_members(*content, index, "", out); !ok) return std::unexpected(ok.error());
  auto files = files_of_index(*content, index);
  if (!files || !is_there(single) || *files == std::vector<std::string>{single}) return files;
  // As transformers does: the index is left over from an older conversion.
  const std::string why = fmt::format("{} comes first", single);
  out.push_back({index, "", why});
  for (const std::string& name : *files)
    if (name != single && is_there(name)) out.push_back({name, "", why});
  return std::vector<std::string>();
}

struct weight_file {
  std::string name;
  gguf::mapping content;
};

result<std::vector<weight_file>> open_weight_files(const fs::path& folder, members_left_out& left) {
  const auto names = files_by_index(folder, left);
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

// The contents of the folder's files beside the tensors.
struct description {
  config about;
  gguf::metadata_builder metadata;
  std::vector<gguf::file::foreign_tensor> made;
  members_left_out left_out;
  bool embeds = false;  // it describes the pooling of embeddings
};

result<json> read_checked(const fs::path& folder, const char* name, std::string_view type,
                          members_left_out& out) {
  auto content = read_optional(folder, name);
  if (!content || content->is_null()) return content;
  if (auto ok = check_members(*content, name, type, out); !ok) return std::unexpected(ok.error());
  return content;
}

// Returns the kind of the vocabulary.
result<std::string> describe_tokenizer(const fs::path& folder, const json& c,
                                       const std::string& type, description& to) {
  const char* names[] = {"tokenizer_config.json", "generation_config.json",
                         "special_tokens_map.json"};
  json found[std::size(names)];
  for (size_t i = 0; i < std::size(names); ++i) {
    auto content = read_checked(folder, names[i], type, to.left_out);
    if (!content) return std::unexpected(content.error());
    found[i] = *std::move(content);
  }
  const auto added = read_optional(folder, "added_tokens.json");
  if (!added) return std::unexpected(added.error());
  auto hints = hints_of({.config = c,
                         .tokenizer_config = found[0],
                         .generation_config = found[1],
                         .special_tokens = found[2],
                         .added_tokens = *added});
  if (auto ok = check_tokenizer_config(found[0], to.left_out); !ok)
    return std::unexpected(ok.error());
  auto chat = chat_template_of(folder, found[0], to.left_out);
  if (!chat) return chat;
  hints.chat_template = *std::move(chat);
  auto tokenizer = open_tokenizer(folder);
  if (!tokenizer) return std::unexpected(tokenizer.error());
  const std::string_view text(reinterpret_cast<const char*>(tokenizer->bytes().data()),
                              tokenizer->bytes().size());
  auto kind = read_tokenizer(text, hints, to.metadata, to.left_out);
  if (auto ok = tokenizer->check_size(); !ok) return std::unexpected(ok.error());
  return kind;
}

result<description> describe(const fs::path& folder, forms known) {
  const auto c = read_json(folder, "config.json");
  if (!c) return std::unexpected(c.error());
  description to;
  const std::string type = model_type_of(*c);
  if (const auto form = form_of(*c, known); !form) return std::unexpected(form.error());
  if (auto ok = check_members(*c, "config.json", type, to.left_out); !ok)
    return std::unexpected(ok.error());
  // Before the tokenizer: with an unknown size a vocabulary could be too large.
  if (const auto n = needed(*c, "vocab_size"); !n) return std::unexpected(n.error());
  const auto kind = describe_tokenizer(folder, *c, type, to);
  if (!kind) return std::unexpected(kind.error());
  auto about = read_config(*c, *kind, known, to.metadata, to.made);
  if (!about) return std::unexpected(about.error());
  to.about = *std::move(about);
  const auto pooling = pooling_of(folder, to.left_out);
  if (!pooling) return std::unexpected(pooling.error());
  to.embeds = pooling->has_value();
  if (const auto& pooled = *pooling)
    to.metadata.u32(to.about.architecture + ".pooling_type", *pooled);
  auto name = fs::absolute(folder).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  to.metadata.text("general.name", name.filename().native());
  return to;
}

// A head in the file of a tied model is dropped if it equals the embedding, else used. If the
// embedding is missing, the head serves as both, as in transformers.
result<void> settle_lm_head(std::vector<gguf::file::foreign_tensor>& tensors, description& d) {
  const auto find = [&](std::string_view name) {
    return std::ranges::find(tensors, name, &gguf::file::foreign_tensor::name);
  };
  const auto lm_head = find("output.weight"), embedding = find("token_embd.weight");
  if (lm_head == tensors.end()) {
    if (d.about.tied || d.embeds) return {};
    return bad_data(
        "config.json: tie_word_embeddings is false, but no file has the tensor 'lm_head.weight'; "
        "the folder holds a model without its head");
  }
  if (!d.about.tied) return {};
  if (embedding == tensors.end()) {
    lm_head->name = "token_embd.weight";
  } else if (lm_head->type == embedding->type && lm_head->ne == embedding->ne &&
             std::ranges::equal(lm_head->bytes, embedding->bytes)) {
    tensors.erase(lm_head);
  } else {
    d.left_out.push_back({"config.json", "tie_word_embeddings",
                          "lm_head.weight is there and differs from the embedding, so it is used"});
  }
  return {};
}

result<gguf::file> open_folder(const fs::path& folder, forms known) {
  auto d = describe(folder, known);
  if (!d) return std::unexpected(d.error());
  auto files = open_weight_files(folder, d->left_out);
  if (!files) return std::unexpected(files.error());
  std::vector<gguf::file::foreign_tensor> tensors = std::move(d->made);
  std::vector<gguf::mapping> mappings;
  std::vector<std::string> passed_over;
  for (auto& [file, content] : *files) {
    auto table = read_safetensors(content.bytes());
    if (!table) return pass_on(std::move(table), file);
    for (const stored_tensor& one : *table) {
      if (is_passed_over(one.name, d->about)) passed_over.emplace_back(one.name);
      auto taken = take(one, d->about);
      if (!taken) return pass_on(std::move(taken), file);
      if (std::optional<gguf::file::foreign_tensor>& kept = *taken)
        tensors.push_back(*std::move(kept));
    }
    mappings.push_back(std::move(content));
  }
  if (auto ok = settle_lm_head(tensors, *d); !ok) return std::unexpected(ok.error());
  name_files(folder, d->left_out);
  std::ranges::sort(passed_over);
  return gguf::file::compose(gguf::header_of(d->metadata, {}), std::move(mappings),
                             std::move(tensors), std::move(passed_over), std::move(d->left_out));
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
