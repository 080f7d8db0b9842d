#include "tokenizer/infill_tokens.hpp"

#include <initializer_list>
#include <string_view>

namespace bitnet::tokenizer {

void find_infill_tokens(vocabulary& v) {
  using texts = std::initializer_list<std::string_view>;
  const auto find = [&](std::optional<token>& to, texts known) {
    for (const std::string_view text : known) {
      if (to) return;
      if (const auto id = v.find(text); id && v.type(*id) == token_type::control) to = id;
    }
  };
  infill_tokens<token>& t = v.infill;
  find(t.pre, {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<\uFF5Cfim\u2581begin\uFF5C>",
               "<PRE>", "\u2581<PRE>", "<|code_prefix|>"});
  find(t.suf, {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<\uFF5Cfim\u2581hole\uFF5C>",
               "<SUF>", "\u2581<SUF>", "<|code_suffix|>"});
  find(t.mid, {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<\uFF5Cfim\u2581end\uFF5C>",
               "<MID>", "\u2581<MID>", "<|code_middle|>"});
  find(t.pad, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>"});
  find(t.rep, {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<reponame>", "<REPO>"});
  find(t.sep, {"<|file_sep|>"});
}

}  // namespace bitnet::tokenizer
