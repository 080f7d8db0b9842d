#include "openai/prompt.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "library/handles.hpp"
#include "openai/infill_prompt.hpp"
#include "openai/tokens_of.hpp"

namespace bitnet::host::openai {
namespace {

std::string thinking_tag(bitnet_str view) {
  return view.size == 0 ? std::string() : std::string(view.data, view.size);
}

// The member in a message of the library: "messages[2].content: expected ...".
std::string param_of(std::string_view message) {
  const std::string_view path = message.substr(0, message.find(": "));
  for (const std::string_view name : {"messages", "tools", "tool_choice"})
    if (path.starts_with(name) && path.find(' ') == std::string_view::npos)
      return std::string(path);
  if (path.starts_with("template_arguments")) return "chat_template_kwargs";
  return "messages";
}

parsed<prompt> chat_prompt(request& from, const bitnet_model* with, const char* template_name) {
  bitnet_chat_request how;
  bitnet_chat_request_defaults(&how, sizeof how);
  how.messages = borrowed(from.messages);
  how.tools = borrowed(from.tools);
  how.tool_choice = borrowed(from.tool_choice);
  how.template_arguments = borrowed(from.template_arguments);
  how.template_name = template_name;
  how.one_call = from.one_call ? 1 : 0;
  library_error err;
  bitnet_chat* opened = nullptr;
  bitnet_status status = bitnet_chat_open(with, &how, &opened, &err);
  if (status != BITNET_OK)
    return std::unexpected(error_of(status, err.message, param_of(err.message)));
  prompt out{{}, {opened, bitnet_chat_close}, "", ""};
  bitnet_chat_info info{};
  info.struct_size = sizeof info;
  status = bitnet_chat_describe(opened, &info, &err);
  if (status != BITNET_OK) return std::unexpected(error_of(status, err.message, "messages"));
  out.ids.assign(info.tokens, info.tokens + info.n_tokens);
  // A form of the body leaves no room for thinking.
  if (from.how.has_form() && info.grammar.size == 0) return out;
  from.how.in_reasoning = info.in_reasoning != 0;
  from.how.reasoning_begins = thinking_tag(info.reasoning_begins);
  from.how.reasoning_ends = thinking_tag(info.reasoning_ends);
  if (info.grammar.size == 0) return out;
  if (from.how.has_form())
    return unsupported("tool_choice",
                       fmt::format("a call is demanded, and '{}' asks for another form; give only "
                                   "one of 'tool_choice' and '{}'",
                                   from.how.form_member, from.how.form_member));
  from.how.grammar.assign(info.grammar.data, info.grammar.size);
  out.unbound.assign(info.unbound.data == nullptr ? "" : info.unbound.data, info.unbound.size);
  return out;
}

parsed<prompt> plain_prompt(const text_or_ids& input, uint32_t flags, const request& from,
                            const bitnet_model* with) {
  prompt out;
  library_error err;
  if (const auto* const given = std::get_if<token_list>(&input)) {
    out.ids = *given;
    if (!from.how.echo) return out;
    const bitnet_status status = fetch(
        [&](char* to, uint64_t capacity, uint64_t* needed) {
          return bitnet_detokenize(with, given->data(), given->size(), 0, to, capacity, needed,
                                   &err);
        },
        out.echoed);
    if (status == BITNET_OK) return out;
    return std::unexpected(error_of(status, err.message, prompt_member(from.to)));
  }
  const std::string& text = std::get<std::string>(input);
  auto ids = tokens_of(text, flags, with, prompt_member(from.to));
  if (!ids) return std::unexpected(ids.error());
  out.ids = *std::move(ids);
  if (from.how.echo) out.echoed = text;
  return out;
}

parsed<void> check_length(const prompt& one, const request& from, const model_limits& model) {
  const char* const member = prompt_member(from.to);
  if (one.ids.empty()) return invalid(member, "the prompt has no token; give a text");
  const uint64_t room = from.to == endpoint::embeddings ? 0 : 1;
  if (model.n_context != 0 && one.ids.size() + room > model.n_context)
    return too_long(member, one.ids.size(), model.n_context);
  return {};
}

}  // namespace

parsed<std::vector<prompt>> prompts_of(request& from, const bitnet_model* with,
                                       const model_limits& model,
                                       const std::string& template_name) {
  std::vector<prompt> out;
  if (from.to == endpoint::chat) {
    const bool in_form = from.how.has_form();
    auto one = chat_prompt(from, with, template_name.empty() ? nullptr : template_name.c_str());
    if (!one) return std::unexpected(one.error());
    if (in_form) one->chat.reset();  // the answer has the form, so nothing parses it
    out.push_back(*std::move(one));
  }
  // The same flags as in `bitnet run` and `bitnet embed`.
  const uint32_t flags =
      BITNET_TOKENIZE_MODEL_BOS |
      (from.to == endpoint::embeddings ? BITNET_TOKENIZE_MODEL_EOS : BITNET_TOKENIZE_PARSE_SPECIAL);
  for (const text_or_ids& input : from.inputs) {
    auto one =
        from.gap ? infill_prompt(input, *from.gap, with) : plain_prompt(input, flags, from, with);
    if (!one) return std::unexpected(one.error());
    out.push_back(*std::move(one));
  }
  for (const prompt& one : out)
    if (auto ok = check_length(one, from, model); !ok) return std::unexpected(ok.error());
  return out;
}

}  // namespace bitnet::host::openai
