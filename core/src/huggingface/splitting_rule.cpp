#include "huggingface/splitting_rule.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "gguf/text.hpp"
#include "huggingface/json_members.hpp"

namespace bitnet::huggingface {
namespace {

using gguf::quote;
using nlohmann::json;

// Spells a component on one line: "Split Isolated <expression>", "Digits each", "ByteLevel words"
// ...
std::string spelled(const json& part) {
  std::string type = text_at(part, "type");
  std::string behavior = text_at(part, "behavior");
  if (behavior.empty()) behavior = "Isolated";
  if (type == "Split") {
    // Removing everything but the matches is the same if the matches cover everything.
    if (behavior == "Removed" && true_at(part, "invert")) behavior = "Isolated";
    return fmt::format("Split {} {}", behavior, text_at(at(part, "pattern"), "Regex"));
  }
  if (type == "Digits") return true_at(part, "individual_digits") ? "Digits each" : "Digits";
  if (type == "Punctuation") return fmt::format("Punctuation {}", behavior);
  if (type != "ByteLevel") return type;
  if (true_at(part, "add_prefix_space")) return "ByteLevel with a space in front";
  return false_at(part, "use_regex") ? "ByteLevel" : "ByteLevel words";
}

struct known_rule {
  std::string_view pre;              // tokenizer.ggml.pre
  std::string_view pre_whole_words;  // name with ignore_merges; "": the same
  std::vector<std::string_view> parts;
};

const std::vector<known_rule>& known_rules() {
  static const std::vector<known_rule> rules = {
      {"dbrx",
       "llama-bpe",
       {R"(Split Isolated (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        "ByteLevel"}},
      {"qwen2",
       "",
       {R"(Split Isolated (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        "ByteLevel"}},
      {"qwen35",
       "",
       {R"(Split Isolated (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        "ByteLevel"}},
      {"gpt-4o",
       "granite-embed-multi-97m",
       {R"(Split Isolated [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        "ByteLevel"}},
      {"tekken",
       "",
       {R"(Split Isolated [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
        "ByteLevel"}},
      {"gpt-2", "", {"ByteLevel words"}},
      {"smollm", "", {"Digits each", "ByteLevel words"}},
      {"falcon", "", {"Punctuation Contiguous", "ByteLevel words", "Digits"}},
      {"falcon",
       "",
       {"Punctuation Contiguous", "ByteLevel words", "Digits", "Split Isolated [0-9][0-9][0-9]"}},
  };
  return rules;
}

}  // namespace

std::vector<json> components_of(const json& one, const char* list) {
  if (one.is_null()) return {};
  const json& all = at(one, list);
  if (text_at(one, "type") == "Sequence" && all.is_array()) return {all.begin(), all.end()};
  return {one};
}

result<std::string> splitting_rule(const json& file) {
  const std::vector<json> parts = components_of(at(file, "pre_tokenizer"), "pretokenizers");
  std::vector<std::string> found;
  std::string types;
  for (const json& part : parts) {
    found.push_back(spelled(part));
    types += (types.empty() ? "" : ", ") + quote(text_at(part, "type"));
  }
  const auto known = std::ranges::find_if(
      known_rules(), [&](const known_rule& r) { return std::ranges::equal(r.parts, found); });
  if (known == known_rules().end())
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("tokenizer.json splits text in a way that this program does not know ({}): "
                    "convert the model with the converter of llama.cpp, which knows more",
                    types));
  const json& whole_words = at(at(file, "model"), "ignore_merges");
  // Llama 3 is older than the key ignore_merges, and does ignore merges.
  const bool whole = whole_words.is_boolean() ? whole_words.get<bool>() : known->pre == "dbrx";
  return std::string(whole && !known->pre_whole_words.empty() ? known->pre_whole_words
                                                              : known->pre);
}

result<bool> composes(const json& file) {
  bool any = false;
  for (const json& part : components_of(at(file, "normalizer"), "normalizers")) {
    const std::string type = text_at(part, "type");
    if (type != "NFC")
      return fail(BITNET_UNSUPPORTED,
                  fmt::format("tokenizer.json changes text by a normalizer of type {}; for "
                              "byte-level BPE this program knows 'NFC'",
                              quote(type)));
    any = true;
  }
  return any;
}

}  // namespace bitnet::huggingface
