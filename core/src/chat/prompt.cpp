#include "chat/prompt.hpp"

#include <fmt/format.h>

#include "answer/binding.hpp"
#include "answer/grammar_text.hpp"
#include "chat/fitting.hpp"

namespace bitnet::chat {
namespace {

std::string_view trimmed_end(std::string_view text) {
  const auto last = text.find_last_not_of(" \t\r\n");
  return last == std::string_view::npos ? "" : text.substr(0, last + 1);
}

result<const answer::dialect*> dialect_for(const tool_support& knows, const conversation& talk,
                                           std::string_view name) {
  if (!name.empty() && name != "auto") {
    if (const answer::dialect* found = answer::find_dialect(name)) return found;
    return fail(BITNET_INVALID_ARGUMENT, fmt::format("dialect: expected auto, {}, found '{}'",
                                                     answer::dialect_names(), name));
  }
  const bool calls = !talk.tools.empty() && talk.choice != calling::none;
  return calls ? knows.dialect : &answer::without_calls(*knows.dialect);
}

bool begins_thinking(std::string_view text, const conversation& talk,
                     const answer::dialect& dialect, const prompt_options& how) {
  if (how.continues) {
    const std::string_view said = talk.messages.back().content;
    return said.starts_with(dialect.thinking_begins) &&
           said.find(dialect.thinking_ends) == std::string_view::npos;
  }
  return how.answer && trimmed_end(text).ends_with(dialect.thinking_begins);
}

// Sets `grammar` and `unbound`.
result<void> add_grammar(const conversation& talk, const tool_support& knows,
                         const prompt_options& how, chat_prompt& made) {
  if (talk.choice != calling::required && talk.choice != calling::named) return {};
  const answer::dialect& dialect = *made.dialect;
  if (dialect.grammar == nullptr)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("tool_choice: the dialect '{}' has no calls; choose another of {}",
                            dialect.name, answer::dialect_names()));
  std::string root = "call";
  if (talk.choice == calling::required && !how.one_call)
    root = fmt::format("call ({} call)*", answer::literal(dialect.between_calls));
  std::string thought;
  const bool thought_ended = trimmed_end(made.text).ends_with(dialect.thinking_ends);
  if (made.thinks || (knows.thinks && !thought_ended)) {
    thought = answer::until_rules("thought", dialect.thinking_ends);
    root = (made.thinks ? std::string("thought")
                        : fmt::format("({} thought)?", answer::literal(dialect.thinking_begins))) +
           " \"\\n\"{0,2} " + root;
  }
  auto bound = answer::bind_arguments(dialect, {&talk.tools, talk.tool});
  if (!bound) return std::unexpected(bound.error());
  made.grammar = fmt::format("root ::= {}\n{}{}", root, thought,
                             dialect.grammar({&talk.tools, talk.tool, bound->rules}));
  made.unbound = std::move(bound->unbound);
  return {};
}

}  // namespace

result<chat_prompt> make_prompt(const source& from, const tool_support& given,
                                const conversation& talk, const prompt_options& how) {
  tool_support knows = given;
  const auto dialect = dialect_for(knows, talk, how.dialect);
  if (!dialect) return std::unexpected(dialect.error());
  // A dialect other than the model's own is explained to the model in words.
  if (!how.dialect.empty() && how.dialect != "auto" && *dialect != given.dialect) {
    knows.dialect = *dialect;
    knows.tools = knows.calls = false;
  }
  chat_prompt out;
  out.dialect = *dialect;
  std::vector<std::string_view> roles;
  for (const request_message& one : talk.messages) roles.push_back(one.role);
  std::size_t rendered = 0;  // messages that were left out of `text`
  const auto make = [&](std::size_t left_out) -> result<std::vector<tokenizer::token>> {
    auto text = render(from, talk,
                       {.form = how.form,
                        .knows = &knows,
                        .answer = how.answer,
                        .continues = how.continues,
                        .left_out = left_out});
    if (!text) return std::unexpected(text.error());
    out.text = text->bytes();
    rendered = left_out;
    return encode(from.tokens(), *text, how.parse_special);
  };
  auto fitted = fit(roles, how.context, make);
  if (!fitted) return std::unexpected(fitted.error());
  out.left_out = fitted->left_out;
  if (rendered != out.left_out) {
    auto again = make(out.left_out);
    if (!again) return std::unexpected(again.error());
    fitted->ids = *std::move(again);
  }
  out.ids = std::move(fitted->ids);
  out.thinks = begins_thinking(out.text, talk, *out.dialect, how);
  if (auto done = add_grammar(talk, knows, how, out); !done) return std::unexpected(done.error());
  return out;
}

}  // namespace bitnet::chat
