#include "chat/template.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "jinja/template.hpp"
#include "text/ascii.hpp"

namespace bitnet::chat {
namespace {

// The text of a form: begin, then for each message before(role) content after(role), then answer.
struct form {
  std::string_view name;
  std::string_view begin;
  struct turn {
    std::string_view before, after;
  } system, user, assistant;
  std::string_view answer;
};

constexpr std::string_view own = "model";
constexpr std::size_t longest_quote = 80;

constexpr std::array forms = {
    form{"bitnet",
         "<|begin_of_text|>",
         {"System: ", "<|eot_id|>"},
         {"User: ", "<|eot_id|>"},
         {"Assistant: ", "<|eot_id|>"},
         "Assistant: "},
    form{"llama3",
         "<|begin_of_text|>",
         {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
         {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
         {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},
         "<|start_header_id|>assistant<|end_header_id|>\n\n"},
    form{"chatml",
         "",
         {"<|im_start|>system\n", "<|im_end|>\n"},
         {"<|im_start|>user\n", "<|im_end|>\n"},
         {"<|im_start|>assistant\n", "<|im_end|>\n"},
         "<|im_start|>assistant\n"},
    form{"falcon3",
         "",
         {"<|system|>\n", "\n"},
         {"<|user|>\n", "\n"},
         {"<|assistant|>\n", "\n"},
         "<|assistant|>\n"},
    form{"instruct", "", {"System: ", "\n\n"}, {"Q: ", "\n"}, {"A: ", "\n\n"}, "A:"},
    form{"raw", "", {"", ""}, {"", ""}, {"", ""}, ""},
};

using jinja::marked_text;
using jinja::origin;

// Templates make control tokens of these roles, <|user|> of user, so they count as the template's
// text. Any other role is text of its message.
constexpr std::array<std::string_view, 8> known_roles = {
    "system", "developer", "user", "assistant", "tool", "function", "ipython", "observation"};

result<jinja::chat_template> parsed(const tokenizer::tokenizer& tokens) {
  if (!tokens.chat_template().empty()) return jinja::chat_template::parse(tokens.chat_template());
  return fail(BITNET_UNSUPPORTED,
              fmt::format("the model has no chat template of its own; choose one of {}", names()));
}

// Renders the model file's Jinja template with the variables of transformers. Tools and thinking
// are undefined, as they are there by default.
result<marked_text> own_form(const source& from, std::span<const message> messages, bool answer,
                             const jinja::limits& bounds = {}) {
  jinja::sequence list;
  for (const message& m : messages) {
    jinja::dict one;
    one.set("role", role_text(m.role));
    one.set("content", marked_text(std::string(m.content), origin::message));
    list.emplace_back(std::move(one));
  }
  jinja::dict variables;
  variables.set("messages", jinja::value::list(std::move(list)));
  variables.set("add_generation_prompt", answer);
  return render_own(from, std::move(variables), bounds);
}

// Why "auto" does not choose the file's own template; "" if it does.
std::string objection(const source& from) {
  const tokenizer::tokenizer& tokens = from.tokens();
  constexpr std::string_view first = "first question";
  constexpr std::string_view second = "second question";
  constexpr message probe[] = {{"user", first}, {"assistant", "answer"}, {"user", second}};
  // About a hundred times what usual templates need, since this runs without a request.
  constexpr jinja::limits bounds{.steps = 200'000, .made_bytes = uint64_t{8} << 20U};
  const auto text = own_form(from, probe, true, bounds);
  if (!text) return text.error().message;
  const std::string& bytes = text->bytes();
  if (bytes.find(first) == std::string::npos || bytes.find(second) == std::string::npos)
    return "it leaves out what the user says";
  const auto ids = encode(tokens, *text, false);
  if (!ids) return ids.error().message;
  if (!ids->empty() && tokens.ends_generation(ids->back()))
    return "it ends in a token that ends generation, where the answer should begin";
  const auto is_mark = [&](tokenizer::token id) {
    return tokens.is_special(id) && id != tokens.bos() && id != tokens.eos();
  };
  const auto eot = tokens.eot();
  if (eot && eot != tokens.eos() && std::ranges::none_of(*ids, is_mark))
    return fmt::format("it does not use {}, which ends turns in this vocabulary",
                       tokens.piece(*eot, true, false).value_or("the token"));
  return "";
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space_ascii(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space_ascii(text.back())) text.remove_suffix(1);
  return text;
}

// An earlier answer without its thinking: no form here supports it, and models that think do not
// get it again.
std::string_view said(std::string_view answer) {
  constexpr std::string_view begin = "<think>";
  constexpr std::string_view end = "</think>";
  if (!trimmed(answer).starts_with(begin)) return answer;
  const auto found = answer.find(end);
  return found == std::string_view::npos ? "" : answer.substr(found + end.size());
}

}  // namespace

source::source(const tokenizer::tokenizer& tokens) : tokens_(&tokens), own_(parsed(tokens)) {}

marked_text role_text(std::string_view role) {
  return {std::string(role), std::ranges::find(known_roles, role) != known_roles.end()
                                 ? origin::own
                                 : origin::message};
}

result<marked_text> render_own(const source& from, jinja::dict variables,
                               const jinja::limits& bounds) {
  if (!from.own()) return std::unexpected(from.own().error());
  const tokenizer::tokenizer& tokens = from.tokens();
  const auto text_of = [&](std::optional<tokenizer::token> id) {
    return marked_text(id ? tokens.decode({{*id}}, true).value_or("") : "", origin::own);
  };
  variables.set("bos_token", text_of(tokens.bos()));
  variables.set("eos_token", text_of(tokens.eos()));
  return from.own()->render(variables, std::time(nullptr), bounds);
}

result<std::vector<tokenizer::token>> encode(const tokenizer::tokenizer& tokens,
                                             const jinja::marked_text& text,
                                             bool parse_special_in_messages) {
  std::vector<tokenizer::text_range> plain;
  if (!parse_special_in_messages)
    for (const jinja::byte_range& one : text.message_ranges())
      plain.push_back({one.begin, one.end});
  return tokens.encode(text.bytes(), {.parse_special = true, .plain = plain});
}

std::string names() {
  std::string out = "auto";
  for (const form& f : forms) out.append(", ").append(f.name);
  return out.append(", ").append(own);
}

std::string_view guess(const tokenizer::tokenizer& tokens) {
  const std::string_view jinja = tokens.chat_template();
  const auto mentions = [&](std::string_view text) {
    return jinja.find(text) != std::string_view::npos;
  };
  if (mentions("<|im_start|>")) return "chatml";
  if (mentions("<|start_header_id|>")) return "llama3";
  if (mentions("<|assistant|>")) return "falcon3";
  if (mentions("BITNETAssistant") || mentions("<|eot_id|>")) return "bitnet";
  // The file has no template: control tokens of the vocabulary decide.
  if (tokens.find("<|im_start|>")) return "chatml";
  if (tokens.find("<|eot_id|>")) return tokens.find("<|start_header_id|>") ? "llama3" : "bitnet";
  if (tokens.find("<|assistant|>")) return "falcon3";
  return "instruct";
}

choice choose(const source& from) {
  const tokenizer::tokenizer& tokens = from.tokens();
  if (tokens.chat_template().empty())
    return {.form = guess(tokens), .why = "the file has no template; the vocabulary decides"};
  const std::string why = objection(from);
  if (why.empty()) return {.form = own, .why = "the file's own template"};
  return {.form = guess(tokens),
          .why = fmt::format("the file's own template is not used: {}", why),
          .set_aside = true};
}

result<jinja::marked_text> format(std::string_view name, const source& from,
                                  std::span<const message> messages, bool answer) {
  if (name.empty() || name == "auto") name = choose(from).form;
  if (name == own) {
    auto text = own_form(from, messages, answer);
    if (!text && !from.tokens().chat_template().empty())
      return fail(text.error().status,
                  fmt::format("the model's own chat template: {}; choose another of {}",
                              text.error().message, names()));
    return text;
  }
  for (const form& f : forms) {
    if (f.name != name) continue;
    marked_text out(std::string(f.begin), origin::own);
    for (const message& m : messages) {
      const form::turn* turn = m.role == "system"      ? &f.system
                               : m.role == "user"      ? &f.user
                               : m.role == "assistant" ? &f.assistant
                                                       : nullptr;
      if (turn == nullptr)
        return fail(BITNET_INVALID_ARGUMENT,
                    fmt::format("role '{}' is not one of system, user, assistant",
                                m.role.substr(0, longest_quote)));
      const std::string_view text = turn == &f.assistant ? said(m.content) : m.content;
      out.append(turn->before, origin::own)
          .append(name == "raw" ? m.content : trimmed(text), origin::message)
          .append(turn->after, origin::own);
    }
    return std::move(answer ? out.append(f.answer, origin::own) : out);
  }
  return fail(BITNET_INVALID_ARGUMENT,
              fmt::format("chat template '{}' is not known; there are {}", name, names()));
}

}  // namespace bitnet::chat
