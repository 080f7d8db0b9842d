#include "commands/chat_format.hpp"

#include <fmt/format.h>

#include "basic/text_input.hpp"
#include "text/utf8.hpp"

namespace bitnet::host {
namespace {

// The dialect for answers without tools of a model that thinks between <think> and </think>.
constexpr std::string_view plain_dialect = "none";

bitnet_chat_info described(const bitnet_chat* chat) {
  bitnet_chat_info info{};
  info.struct_size = sizeof info;
  library_error err;
  bitnet_chat_describe(chat, &info, &err);  // fails only for NULL
  return info;
}

}  // namespace

bool is_system(const chat_message& one) {
  return one.role == "system";
}

std::optional<std::string> system_prompt(const settings& set) {
  const std::string& text = set.text("system-prompt");
  if (text.empty()) return std::nullopt;
  return set.flag("escape") ? unescape(text) : text;
}

result<chat_form> chat_form::from(const settings& set) {
  chat_form out{.template_name = set.text("chat-template"),
                .parse_special = set.flag("parse-special-in-messages"),
                .n_context = 0,
                .tools = ""};
  const std::string& file = set.text("tools");
  if (file.empty()) return out;
  auto text = read_text_file(file, longest_text);
  if (!text) return fail(exit_code::usage, text.error().message);
  out.tools = *std::move(text);
  // Check the tools before a model is loaded.
  bitnet_answer_options options;
  bitnet_answer_defaults(&options, sizeof options);
  options.tools = borrowed(out.tools);
  bitnet_answer* answer = nullptr;
  library_error err;
  const bitnet_status status = bitnet_answer_open(&options, &answer, &err);
  bitnet_answer_close(answer);
  if (status != BITNET_OK)
    return fail(exit_code::usage, fmt::format("--tools {}: {}", file, err.message));
  return out;
}

result<chat_prompt> chat_ids(const bitnet_model* model, const chat_form& form,
                             std::span<const chat_message> messages) {
  // An answer may contain invalid UTF-8 and is kept; in a user's message it is an error.
  for (const chat_message& one : messages)
    if (const auto broken = text::first_invalid_utf8(one.content);
        broken && one.role != "assistant")
      return fail(exit_code::usage,
                  fmt::format("the message is not UTF-8: expected text, found another byte at {}",
                              *broken));
  const std::string text = messages_json(messages);
  bitnet_chat_request request;
  bitnet_chat_request_defaults(&request, sizeof request);
  request.parse_special = form.parse_special ? 1 : 0;
  request.template_name = form.template_name.empty() ? nullptr : form.template_name.c_str();
  request.n_context = form.n_context;
  request.messages = borrowed(text);
  request.tools = borrowed(form.tools);
  bitnet_chat* chat = nullptr;
  library_error err;
  const bitnet_status status = bitnet_chat_open(model, &request, &chat, &err);
  if (status == BITNET_CONTEXT_FULL)
    return fail(exit_code::failure, fmt::format("{}: start with -c N", err.message));
  if (status != BITNET_OK) return failed(status, err, stage::text);
  chat_prompt out;
  out.chat.reset(chat);
  const bitnet_chat_info info = described(chat);
  out.ids.assign(info.tokens, info.tokens + info.n_tokens);
  out.left_out = info.n_left_out;
  const std::string_view begins(info.reasoning_begins.data, info.reasoning_begins.size);
  if (info.in_reasoning != 0) out.begun = fmt::format("{}\n", begins);
  out.has_own_marks = std::string_view(info.dialect.data, info.dialect.size) != plain_dialect;
  return out;
}

result<answer_handle> open_answer(const chat_prompt& prompt, const chat_form& form) {
  bitnet_answer* answer = nullptr;
  library_error err;
  bitnet_status status = BITNET_OK;
  if (prompt.chat != nullptr && (!form.tools.empty() || prompt.has_own_marks)) {
    status = bitnet_chat_answer(prompt.chat.get(), nullptr, &answer, &err);
  } else {
    bitnet_answer_options options;
    bitnet_answer_defaults(&options, sizeof options);
    options.in_reasoning = prompt.begun.empty() ? 0 : 1;
    status = bitnet_answer_open(&options, &answer, &err);
  }
  if (status != BITNET_OK) return failed(status, err, stage::work);
  return answer_handle(answer);
}

}  // namespace bitnet::host
