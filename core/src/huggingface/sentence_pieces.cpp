#include "huggingface/sentence_pieces.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gguf/text.hpp"
#include "huggingface/json_members.hpp"
#include "huggingface/splitting_rule.hpp"

namespace bitnet::huggingface {
namespace {

using gguf::quote;
using nlohmann::json;

constexpr std::string_view blank_mark = "\xE2\x96\x81";  // U+2581

std::unexpected<failure> unknown_marks(const char* where, const std::string& what) {
  return fail(BITNET_UNSUPPORTED,
              fmt::format("tokenizer.json: {} {}; of a tokenizer with byte fallback this program "
                          "knows marks for blanks only",
                          where, what));
}

// Reads the normalizer: ▁ for each blank, and perhaps one in front.
result<blank_before> normalizer_of(const json& file) {
  auto to = blank_before::never;
  for (const json& part : components_of(at(file, "normalizer"), "normalizers")) {
    const std::string type = text_at(part, "type");
    if (type == "Prepend" && text_at(part, "prepend") == blank_mark) {
      to = blank_before::always;
    } else if (type != "Replace" || text_at(at(part, "pattern"), "String") != " " ||
               text_at(part, "content") != blank_mark) {
      return unknown_marks("normalizer", fmt::format("has a part of type {}", quote(type)));
    }
  }
  return to;
}

result<blank_before> metaspace_of(const json& part, const std::function<bool()>& inner) {
  if (const json& with = at(part, "replacement"); !with.is_null() && with != blank_mark)
    return unknown_marks("pre_tokenizer", "of type 'Metaspace' has another mark than U+2581");
  if (!false_at(part, "split") && inner())
    return unknown_marks("pre_tokenizer",
                         "of type 'Metaspace' splits at blanks, which tokens have inside");
  std::string scheme = text_at(part, "prepend_scheme");
  if (scheme.empty()) scheme = false_at(part, "add_prefix_space") ? "never" : "always";
  if (scheme == "never") return blank_before::never;
  if (scheme == "always") return blank_before::unless_there;
  if (scheme == "first") return blank_before::unless_there_at_beginning;
  return unknown_marks("pre_tokenizer",
                       fmt::format("of type 'Metaspace' has the prepend_scheme {}", quote(scheme)));
}

}  // namespace

result<blank_before> marks_of(const json& file, const std::function<bool()>& has_inner_blanks) {
  auto to = normalizer_of(file);
  if (!to) return to;
  for (const json& part : components_of(at(file, "pre_tokenizer"), "pretokenizers")) {
    const std::string type = text_at(part, "type");
    if (type == "Metaspace") {
      const auto more = metaspace_of(part, has_inner_blanks);
      if (!more) return more;
      if (*more == blank_before::never) continue;
      if (*to != blank_before::never)
        return unknown_marks("pre_tokenizer", "puts a second blank before a text");
      to = *more;
    } else if (type != "Split" || text_at(at(part, "pattern"), "String") != " ") {
      return unknown_marks("pre_tokenizer", fmt::format("has a part of type {}", quote(type)));
    }
  }
  return to;
}

}  // namespace bitnet::huggingface
