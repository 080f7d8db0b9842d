#include <fmt/core.h>

#include <limits>
#include <utility>

#include "gguf/text.hpp"
#include "model/read.hpp"

namespace bitnet::model {
namespace {

using gguf::quote;
using gguf::value;

// The elements of an array as T, each through `read`; empty if the key is not in the file.
template <class T, class Read>
result<std::vector<T>> array_of(const gguf::container& from, std::string_view key,
                                std::string_view expected, Read read) {
  const value* v = from.find(key);
  std::vector<T> out;
  if (v == nullptr) return out;
  bool fits = v->type == gguf::value_type::array;
  if (fits) {
    out.reserve(v->count);
    gguf::for_each_element(*v, [&](const value& element) {
      auto x = read(element);
      fits = x.has_value();
      if (fits) out.push_back(T(*x));
      return fits;
    });
  }
  if (!fits)
    return fail(BITNET_BAD_DATA,
                fmt::format("metadata key {} should be an array of {}", quote(key), expected));
  return out;
}

std::optional<int32_t> to_int32(const value& v) {
  const auto wide = gguf::to_integer(v);
  if (!wide || !std::in_range<int32_t>(*wide)) return std::nullopt;
  return static_cast<int32_t>(*wide);
}

std::optional<float> to_float(const value& v) {
  const auto wide = gguf::to_real(v);
  if (!wide) return std::nullopt;
  return static_cast<float>(*wide);
}

// Stores what a read returned; keeps the first failure.
struct collector {
  std::optional<failure> first;
  template <class From, class To>
  void take(result<From>&& from, To& to) {
    if (from)
      to = std::move(*from);
    else if (!first)
      first = std::move(from.error());
  }
  void take(result<std::optional<std::string_view>>&& from, std::string& to) {
    if (!from) {
      if (!first) first = std::move(from.error());
    } else {
      to = std::string(from->value_or(""));
    }
  }
};

}  // namespace

result<tokenizer::vocabulary_data> read_vocabulary(const gguf::container& metadata) {
  tokenizer::vocabulary_data v;
  collector in;
  const auto text = [&](const char* key, std::string& to) { in.take(metadata.text(key), to); };
  const auto id = [&](const char* key, std::optional<int64_t>& to) {
    in.take(metadata.integer(key), to);
  };
  const auto flag = [&](const char* key, std::optional<bool>& to) {
    in.take(metadata.boolean(key), to);
  };
  text("general.architecture", v.architecture);
  text("tokenizer.ggml.model", v.model);
  text("tokenizer.ggml.pre", v.pre);
  text("tokenizer.chat_template", v.chat_template);
  text("tokenizer.bitnet.space_prefix", v.space_prefix);
  id("tokenizer.ggml.bos_token_id", v.bos);
  id("tokenizer.ggml.eos_token_id", v.eos);
  id("tokenizer.ggml.eot_token_id", v.eot);
  id("tokenizer.ggml.eom_token_id", v.eom);
  id("tokenizer.ggml.unknown_token_id", v.unknown);
  id("tokenizer.ggml.seperator_token_id", v.separator);  // the format's spelling
  id("tokenizer.ggml.padding_token_id", v.padding);
  // Older files name the first three differently.
  id("tokenizer.ggml.prefix_token_id", v.infill.pre);
  id("tokenizer.ggml.suffix_token_id", v.infill.suf);
  id("tokenizer.ggml.middle_token_id", v.infill.mid);
  for (const auto& [key, to] : {std::pair{"tokenizer.ggml.fim_pre_token_id", &v.infill.pre},
                                {"tokenizer.ggml.fim_suf_token_id", &v.infill.suf},
                                {"tokenizer.ggml.fim_mid_token_id", &v.infill.mid},
                                {"tokenizer.ggml.fim_pad_token_id", &v.infill.pad},
                                {"tokenizer.ggml.fim_rep_token_id", &v.infill.rep},
                                {"tokenizer.ggml.fim_sep_token_id", &v.infill.sep}})
    if (metadata.find(key) != nullptr) id(key, *to);
  flag("tokenizer.ggml.add_bos_token", v.add_bos);
  flag("tokenizer.ggml.add_eos_token", v.add_eos);
  flag("tokenizer.ggml.add_space_prefix", v.add_space_prefix);
  flag("tokenizer.ggml.normalizer.nfc", v.compose);
  flag("tokenizer.ggml.normalizer.lowercase", v.lowercase);
  flag("tokenizer.ggml.normalizer.strip_accents", v.strip_accents);
  in.take(array_of<std::string>(metadata, "tokenizer.ggml.tokens", "strings", gguf::to_string),
          v.tokens);
  in.take(array_of<std::string>(metadata, "tokenizer.ggml.merges", "strings", gguf::to_string),
          v.merges);
  in.take(array_of<float>(metadata, "tokenizer.ggml.scores", "numbers", to_float), v.scores);
  in.take(array_of<int32_t>(metadata, "tokenizer.ggml.token_type", "32-bit integers", to_int32),
          v.types);
  for (const auto& [key, to] : {std::pair{"tokenizer.ggml.eos_token_ids", &v.ends},
                                {"tokenizer.bitnet.added_token_flags", &v.flags}})
    in.take(array_of<int32_t>(metadata, key, "32-bit integers", to_int32), *to);
  if (in.first) return std::unexpected(*std::move(in.first));
  if (v.model.empty() || v.tokens.empty())
    return fail(BITNET_BAD_DATA,
                fmt::format("the file has no tokenizer: expected the metadata key {}; convert the "
                            "model again together with its tokenizer",
                            v.model.empty() ? "tokenizer.ggml.model" : "tokenizer.ggml.tokens"));
  return v;
}

}  // namespace bitnet::model
