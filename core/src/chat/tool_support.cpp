#include "chat/tool_support.hpp"

#include <algorithm>
#include <array>

#include "answer/splitter.hpp"
#include "chat/rendering.hpp"

namespace bitnet::chat {
namespace {

constexpr std::string_view question = "what is the probe's question";
constexpr std::string_view outcome = "what the probe's tool found";
constexpr std::string_view tool_name = "probe_tool";
constexpr std::string_view argument_name = "probe_argument";
constexpr std::string_view argument = "probe value";

bool has(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

// A test conversation: a tool, a question, a call and its result, each if wanted.
result<conversation> probe(bool call, bool tool) {
  json::value list = {{{"role", "user"}, {"content", question}}};
  if (call) {
    list.push_back(
        {{"role", "assistant"},
         {"content", nullptr},
         {"tool_calls",
          {{{"id", "probe00id"},
            {"type", "function"},
            {"function", {{"name", tool_name}, {"arguments", {{argument_name, argument}}}}}}}}});
    list.push_back({{"role", "tool"},
                    {"tool_call_id", "probe00id"},
                    {"name", tool_name},
                    {"content", outcome}});
  }
  const json::value tools = {
      {{"type", "function"},
       {"function",
        {{"name", tool_name},
         {"description", "a probe"},
         {"parameters",
          {{"type", "object"}, {"properties", {{argument_name, {{"type", "string"}}}}}}}}}}};
  return read_conversation({json::written(list), tool ? json::written(tools) : "",
                            std::string_view(), std::string_view()});
}

std::string rendered(const source& from, bool call, bool tool) {
  const auto talk = probe(call, tool);
  if (!talk) return "";
  const tool_support all{.dialect = &answer::plain_dialect(),
                         .tools = true,
                         .calls = true,
                         .results = true,
                         .developer = true};
  const auto text = render(from, *talk, {.form = "model", .knows = &all, .answer = true});
  return text ? text->bytes() : "";
}

// Whether the dialect reads the test call from `text`, from a place where one of its frames begins.
bool reads_call(const answer::dialect& dialect, std::string_view text, const answer::tools& known) {
  answer::splitter split({.dialect = &dialect, .known = known, .thinks = false, .id_prefix = ""});
  std::vector<answer::part> parts = split.take(text);
  const std::vector<answer::part> rest = split.finish();
  parts.insert(parts.end(), rest.begin(), rest.end());
  const auto begins =
      std::ranges::find(parts, answer::part::kind::call_begins, &answer::part::what);
  if (begins == parts.end() || begins->name != tool_name) return false;
  const auto arguments = json::read((begins + 1)->text, "arguments");
  return arguments && arguments->is_object() && arguments->size() == 1 &&
         json::member(*arguments, argument_name.data()) == argument;
}

const answer::dialect* dialect_of(std::string_view text, const answer::tools& known) {
  constexpr int most_tries = 32;  // per frame
  for (const answer::dialect* dialect : answer::dialects()) {
    if (!has(text, dialect->mark)) continue;
    for (const answer::frame& one : dialect->frames) {
      std::size_t at = text.find(one.begin);
      for (int tries = 0; at != std::string_view::npos && tries < most_tries; ++tries) {
        if (reads_call(*dialect, text.substr(at), known)) return dialect;
        at = text.find(one.begin, at + 1);
      }
    }
  }
  return nullptr;
}

// Guesses by words in a template that renders no calls, or by a built-in form.
const answer::dialect* guessed_dialect(std::string_view form, std::string_view text) {
  struct word {
    std::string_view in_text, dialect;
  };
  constexpr std::array words = {
      word{"<function=", "tagged"},           word{"<tool_call>", "hermes"},
      word{"<|tool_call_start|>", "minicpm"}, word{"<start_of_turn>", "gemma"},
      word{"<|start_header_id|>", "llama3"},
  };
  if (form == "llama3" || form == "bitnet") return answer::find_dialect("llama3");
  if (form == "model")
    for (const word& one : words)
      if (text.find(one.in_text) != std::string_view::npos)
        return answer::find_dialect(one.dialect);
  return answer::find_dialect("hermes");
}

}  // namespace

tool_support tool_support_of(std::string_view name, const source& from) {
  const std::string_view jinja = from.tokens().chat_template();
  tool_support out;
  if (name == "model" && from.own()) {
    const auto talk = probe(true, true);
    const std::string with_call = rendered(from, true, true);
    const auto asked = with_call.rfind(question);
    if (talk && asked != std::string::npos) {
      const auto found = with_call.find(outcome, asked);
      out.results = found != std::string::npos;
      out.dialect =
          dialect_of(std::string_view(with_call).substr(asked, found - asked), talk->tools);
      out.calls = out.dialect != nullptr;
    }
    out.tools = has(rendered(from, false, true), tool_name);
    out.developer = has(jinja, "developer");
  }
  if (out.dialect == nullptr) out.dialect = guessed_dialect(name, jinja);
  out.thinks = has(jinja, out.dialect->thinking_begins) || has(jinja, out.dialect->thinking_ends);
  return out;
}

}  // namespace bitnet::chat
