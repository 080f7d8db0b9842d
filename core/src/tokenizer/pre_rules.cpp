// The one table of pre-tokenizer names: docs/reference/tokenizers.md#splitting-rules
#include <algorithm>

#include "tokenizer/pre_tokenizer.hpp"
#include "tokenizer/utf8.hpp"

namespace bitnet::tokenizer {
namespace {

constexpr std::string_view llama3 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view gpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr std::string_view falcon_punctuation = R"([\p{P}\$\+<=>\^~\|`]+)";
constexpr std::string_view punctuation = R"([\p{P}\$\+<=>\^~\|]+)";
constexpr std::string_view numbers = R"(\p{N}+)";
constexpr std::string_view three_digits = R"([0-9][0-9][0-9])";

struct row {
  std::vector<std::string_view> names;
  pre_rule rule;
};

const std::vector<row>& table() {
  static const std::vector<row> rows = {
      {{"llama-bpe", "llama3", "llama-v3", "falcon3"}, {{llama3}, true, true, ""}},
      {{"falcon_e"},
       {{llama3},
        true,
        true,
        "the pre-tokenizer \"falcon_e\" is not documented; llama-bpe is used, as other readers "
        "do"}},
      {{"qwen2", "deepseek-r1-qwen"}, {{qwen2}, false, false, ""}},
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "roberta-bpe"}, {{gpt2}, false, false, ""}},
      {{"falcon"}, {{falcon_punctuation, gpt2, three_digits}, false, false, ""}},
      {{"default"}, {{punctuation, gpt2, numbers, three_digits}, false, false, ""}},
  };
  return rows;
}

const pre_rule& named(std::string_view name, bool& found) {
  for (const row& r : table()) {
    found = std::ranges::find(r.names, name) != r.names.end();
    if (found) return r.rule;
  }
  return table().back().rule;
}

}  // namespace

pre_rule pre_rule_for(std::string_view pre, std::string_view architecture) {
  // The official BitNet file lacks the key; its text is wrong with any other rule.
  if (pre.empty() && architecture.starts_with("bitnet")) pre = "llama-bpe";
  bool found = false;
  pre_rule rule = named(pre, found);
  if (pre.empty()) {
    rule.note =
        "the file has no tokenizer.ggml.pre; \"default\" is used and some text may be split "
        "wrongly";
  } else if (!found) {
    rule.note = "the pre-tokenizer " + in_quotes(pre) +
                " is not known; \"default\" is used and some text may be split wrongly";
  }
  return rule;
}

}  // namespace bitnet::tokenizer
