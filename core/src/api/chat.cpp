#include "api/answers.hpp"
#include "api/edge.hpp"
#include "api/objects.hpp"
#include "base/wording.hpp"
#include "chat/fitting.hpp"
#include "chat/prompt.hpp"

struct bitnet_chat {
  bitnet::chat::chat_prompt prompt;
  bitnet::answer::tools tools;
};

namespace {

using bitnet::say;
using bitnet::word;
using bitnet::api::guarded;
using bitnet::api::missing;
using bitnet::api::view;

const bitnet::chat::source& source_of(const bitnet_model& model) {
  std::call_once(model.chat_source_once, [&] {
    model.chat_source = std::make_unique<const bitnet::chat::source>(model.model.tokens());
  });
  return *model.chat_source;
}

std::string_view template_of(const bitnet_model& model, const char* name) {
  const std::string_view wanted = name == nullptr ? "auto" : name;
  if (!wanted.empty() && wanted != "auto") return wanted;
  std::call_once(model.chat_once, [&] {
    model.chat = bitnet::chat::choose(source_of(model));
    if (model.runtime == nullptr) return;
    model.runtime->services.log(
        model.chat.set_aside ? BITNET_LOG_WARN : BITNET_LOG_INFO, "chat",
        model.chat.set_aside
            ? fmt::format("{}; the built-in form {} is; {} to have another", model.chat.why,
                          model.chat.form, say(word::name_template))
            : fmt::format("the form is {}: {}", model.chat.form, model.chat.why));
  });
  return model.chat.form;
}

// The form's support of tools; for the file's own template it is determined once.
bitnet::chat::tool_support support_of(const bitnet_model& model, std::string_view form) {
  if (form != "model") return bitnet::chat::tool_support_of(form, source_of(model));
  std::call_once(model.chat_tools_once,
                 [&] { model.chat_tools = bitnet::chat::tool_support_of(form, source_of(model)); });
  return model.chat_tools;
}

bitnet::result<std::vector<bitnet::chat::message>> messages_of(const bitnet_message* messages,
                                                               uint64_t n, uint32_t size) {
  std::vector<bitnet::chat::message> out;
  constexpr uint32_t first_size = 32;
  for (uint64_t i = 0; i < n; ++i) {
    const auto one = bitnet::api::element_of(messages, i, size, first_size, "a message");
    if (!one) return std::unexpected(one.error());
    out.push_back({view(one->role), view(one->content)});
  }
  return out;
}

bitnet_str borrowed(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

void bitnet_chat_defaults(bitnet_chat_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_chat_tokenize(const bitnet_model* model, const bitnet_chat_options* options,
                                   const bitnet_message* messages, uint32_t message_size,
                                   uint64_t n, bitnet_token* out, uint64_t capacity,
                                   uint64_t* count, uint64_t* left_out, bitnet_error* err) {
  return guarded(err, "bitnet_chat_tokenize", [&]() -> bitnet::result<void> {
    if (model == nullptr || count == nullptr || (messages == nullptr && n != 0))
      return missing("model, count or messages");
    const auto taken = bitnet::api::take_options(options, bitnet_chat_defaults);
    if (!taken) return std::unexpected(taken.error());
    const auto list = messages_of(messages, n, message_size);
    if (!list) return std::unexpected(list.error());
    const auto prompt =
        bitnet::chat::fit(template_of(*model, taken->template_name), source_of(*model), *list,
                          taken->parse_special != 0, taken->n_context);
    if (!prompt) return std::unexpected(prompt.error());
    const auto& ids = prompt->ids;
    *count = ids.size();
    if (left_out != nullptr) *left_out = prompt->left_out;
    if (out != nullptr) std::copy_n(ids.begin(), std::min<uint64_t>(capacity, ids.size()), out);
    return {};
  });
}

bitnet_status bitnet_chat_format(const bitnet_model* model, const char* template_name,
                                 const bitnet_message* messages, uint32_t message_size, uint64_t n,
                                 char* out, uint64_t capacity, uint64_t* needed,
                                 bitnet_error* err) {
  return guarded(err, "bitnet_chat_format", [&]() -> bitnet::result<void> {
    if (model == nullptr || (messages == nullptr && n != 0)) return missing("model or messages");
    const auto list = messages_of(messages, n, message_size);
    if (!list) return std::unexpected(list.error());
    // The text may differ between two calls, since a template may read the clock.
    const std::string_view form = template_of(*model, template_name);
    std::string of = fmt::format("chat {} {}", static_cast<const void*>(model), form);
    for (const auto& m : *list) of.append("\n").append(m.role).append("\n").append(m.content);
    return bitnet::api::give_changing_text(
        of, out, capacity, needed, [&]() -> bitnet::result<std::string> {
          auto text = bitnet::chat::format(form, source_of(*model), *list);
          if (!text) return std::unexpected(text.error());
          return text->bytes();
        });
  });
}

void bitnet_chat_request_defaults(bitnet_chat_request* request, uint32_t size) {
  bitnet::api::give_defaults({}, request, size);
}

bitnet_status bitnet_chat_open(const bitnet_model* model, const bitnet_chat_request* request,
                               bitnet_chat** out, bitnet_error* err) {
  return guarded(err, "bitnet_chat_open", [&]() -> bitnet::result<void> {
    if (model == nullptr || request == nullptr || out == nullptr)
      return missing("model, request or out");
    const auto taken = bitnet::api::take_options(request, bitnet_chat_request_defaults);
    if (!taken) return std::unexpected(taken.error());
    auto talk = bitnet::chat::read_conversation({.messages = view(taken->messages),
                                                 .tools = view(taken->tools),
                                                 .tool_choice = view(taken->tool_choice),
                                                 .variables = view(taken->template_arguments)});
    if (!talk) return std::unexpected(talk.error());
    const std::string_view form = template_of(*model, taken->template_name);
    auto prompt =
        bitnet::chat::make_prompt(source_of(*model), support_of(*model, form), *talk,
                                  {.form = form,
                                   .dialect = taken->dialect == nullptr ? "" : taken->dialect,
                                   .parse_special = taken->parse_special != 0,
                                   .answer = taken->no_answer == 0,
                                   .continues = taken->continue_last != 0,
                                   .one_call = taken->one_call != 0,
                                   .context = taken->n_context});
    if (!prompt) return std::unexpected(prompt.error());
    *out = new bitnet_chat{*std::move(prompt), std::move(talk->tools)};
    return {};
  });
}

void bitnet_chat_close(bitnet_chat* chat) {
  delete chat;
}

bitnet_status bitnet_chat_describe(const bitnet_chat* chat, bitnet_chat_info* out,
                                   bitnet_error* err) {
  return guarded(err, "bitnet_chat_describe", [&]() -> bitnet::result<void> {
    if (chat == nullptr || out == nullptr) return missing("chat or out");
    const bitnet::chat::chat_prompt& made = chat->prompt;
    bitnet_chat_info info{};
    info.in_reasoning = made.thinks ? 1 : 0;
    info.tokens = made.ids.data();
    info.n_tokens = made.ids.size();
    info.n_left_out = made.left_out;
    info.text = borrowed(made.text);
    info.dialect = borrowed(made.dialect->name);
    info.grammar = borrowed(made.grammar);
    info.reasoning_ends = borrowed(made.dialect->thinking_ends);
    info.unbound = borrowed(made.unbound);
    info.reasoning_begins = borrowed(made.dialect->thinking_begins);
    return bitnet::api::give_result(info, out);
  });
}

bitnet_status bitnet_chat_answer(const bitnet_chat* chat, const char* call_ids, bitnet_answer** out,
                                 bitnet_error* err) {
  return guarded(err, "bitnet_chat_answer", [&]() -> bitnet::result<void> {
    if (chat == nullptr || out == nullptr) return missing("chat or out");
    *out = bitnet::api::make_answer({.dialect = chat->prompt.dialect,
                                     .known = chat->tools,
                                     .thinks = chat->prompt.thinks,
                                     .id_prefix = bitnet::api::call_ids_of(call_ids)});
    return {};
  });
}
