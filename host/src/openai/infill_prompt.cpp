#include "openai/infill_prompt.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "library/handles.hpp"
#include "openai/tokens_of.hpp"

namespace bitnet::host::openai {
namespace {

// Assembles the prompt and keeps the first error.
class infill_tokens {
 public:
  infill_tokens(const bitnet_model* with, const char* member) : with_(with), member_(member) {}

  void add(uint32_t id) { ids_.push_back(static_cast<bitnet_token>(id)); }
  // Adds text; names of control tokens in it stay text.
  void add(const std::string& text, uint32_t flags = 0) {
    auto more = tokens_of(text, flags, with_, member_);
    if (more)
      add(*more);
    else if (!error_)
      error_ = std::move(more.error());
  }
  void add(const token_list& more) { ids_.insert(ids_.end(), more.begin(), more.end()); }
  [[nodiscard]] parsed<prompt> take() {
    if (error_) return std::unexpected(*std::move(error_));
    return prompt{std::move(ids_), nullptr, "", ""};
  }

 private:
  const bitnet_model* with_;
  const char* member_;
  token_list ids_;
  std::optional<api_error> error_;
};

// The metadata keys of the tokens that the model lacks.
std::string missing_keys(const bitnet_model_info& info) {
  std::string out;
  for (const auto& [name, id] :
       {std::pair{"pre", info.fim_pre}, {"suf", info.fim_suf}, {"mid", info.fim_mid}})
    if (id == BITNET_NONE)
      out += fmt::format("{}tokenizer.ggml.fim_{}_token_id", out.empty() ? "" : ", ", name);
  return out;
}

void add_repository(infill_tokens& to, const infill_gap& gap, const bitnet_model_info& info) {
  constexpr const char* between = "\n\n--- snippet ---\n\n";  // from llama-server
  const bool has_files = info.fim_sep != BITNET_NONE;
  if (info.fim_rep != BITNET_NONE) {
    to.add(info.fim_rep);
    to.add(std::string("myproject\n"));
  }
  for (const infill_gap::file& one : gap.others) {
    if (has_files) to.add(info.fim_sep);
    to.add(has_files ? one.name + "\n" : std::string(between));
    to.add(one.text);
  }
  if (!has_files) return;
  to.add(info.fim_sep);
  to.add(std::string("filename\n"));
}

}  // namespace

parsed<prompt> infill_prompt(const text_or_ids& before, const infill_gap& gap,
                             const bitnet_model* with) {
  bitnet_model_info info{};
  info.struct_size = sizeof info;
  library_error err;
  const bitnet_status status = bitnet_model_describe(with, &info, &err);
  if (status != BITNET_OK) return std::unexpected(error_of(status, err.message));
  if (const std::string missing = missing_keys(info); !missing.empty())
    return unsupported(gap.member,
                       fmt::format("the model does not fill in text: its file has no {}, and its "
                                   "vocabulary no control token of a known name; use a model that "
                                   "was trained for it",
                                   missing));
  infill_tokens out(with, gap.member);
  out.add("", BITNET_TOKENIZE_MODEL_BOS);
  if (gap.in_repository) add_repository(out, gap, info);
  out.add(info.fim_pre);
  if (const auto* const ids = std::get_if<token_list>(&before))
    out.add(*ids);
  else
    out.add(std::get<std::string>(before));
  out.add(info.fim_suf);
  out.add(gap.suffix);
  out.add(info.fim_mid);
  return out.take();
}

}  // namespace bitnet::host::openai
