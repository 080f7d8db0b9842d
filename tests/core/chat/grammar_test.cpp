// Grammars that bind an answer to a call: they are grammars, and have what dialects write.
#include <gtest/gtest.h>

#include <algorithm>

#include "chat/prompt.hpp"
#include "grammar/automaton.hpp"
#include "grammar/gbnf.hpp"
#include "small_vocabulary.hpp"

namespace bitnet::chat {
namespace {

constexpr std::string_view tools_text = R"([
  {"function": {"name": "get_weather", "parameters": {"type": "object", "properties": {
    "city": {"type": "string"}, "days": {"type": "integer"}, "near": {"type": "null"}}}}},
  {"function": {"name": "get_time"}}])";

// What an automaton says of a text: whole, the beginning of one, or neither.
enum class verdict : uint8_t { no, begun, whole };

verdict verdict_of(const std::string& gbnf, std::string_view text) {
  auto rules = grammar::parse_gbnf(gbnf);
  if (!rules) {
    ADD_FAILURE() << rules.error().message << "\n" << gbnf;
    return verdict::no;
  }
  grammar::automaton states(*std::move(rules));
  const auto now = states.next(states.start(), text);
  EXPECT_FALSE(states.trouble());
  if (now == grammar::automaton::dead) return verdict::no;
  return states.is_complete(now) ? verdict::whole : verdict::begun;
}

std::string grammar_of(const char* dialect, const char* choice, bool one_call = false,
                       std::string_view form = "raw", const std::string& jinja = "") {
  const auto tokens = vocabulary({}, jinja);
  const source from(tokens);
  const auto talk = read_conversation(
      {R"([{"role": "user", "content": "Hi"}])", tools_text, choice, std::string_view()});
  EXPECT_TRUE(talk);
  const auto prompt = make_prompt(from, tool_support_of(form, from), *talk,
                                  {.form = form, .dialect = dialect, .one_call = one_call});
  if (!prompt) return prompt.error().message;
  return prompt->grammar;
}

constexpr const char* named = R"({"type": "function", "function": {"name": "get_weather"}})";

TEST(call_grammar, has_the_calls_that_dialects_write) {
  const answer::call weather{"get_weather",
                             R"({"city": "Bonn \"x\" é", "days": -3, "near": null})"};
  for (const answer::dialect* form : answer::dialects()) {
    if (form->write == nullptr) continue;
    SCOPED_TRACE(form->name);
    const std::string name(form->name);
    const std::string one = form->write(weather);
    const std::string other = form->write({"get_time", "{}"});
    const std::string between(form->between_calls);
    const std::string required = grammar_of(name.c_str(), "\"required\"");
    EXPECT_EQ(verdict_of(required, one), verdict::whole);
    EXPECT_EQ(verdict_of(required, one.substr(0, one.size() - 1)), verdict::begun);
    EXPECT_EQ(verdict_of(required, one + between + other), verdict::whole);
    EXPECT_EQ(verdict_of(required, "Hello"), verdict::no);
    const std::string only = grammar_of(name.c_str(), named);
    EXPECT_EQ(verdict_of(only, one), verdict::whole);
    EXPECT_EQ(verdict_of(only, other), verdict::no);
    EXPECT_EQ(verdict_of(only, one + between + one), verdict::no);
    const std::string single = grammar_of(name.c_str(), "\"required\"", true);
    EXPECT_EQ(verdict_of(single, other), verdict::whole);
    EXPECT_EQ(verdict_of(single, other + between + other), verdict::no);
    EXPECT_EQ(grammar_of(name.c_str(), "\"auto\""), "");
  }
  EXPECT_NE(grammar_of("none", "\"required\"").find("the dialect 'none' has no calls"),
            std::string::npos);
}

TEST(call_grammar, leaves_room_for_thinking) {
  const answer::dialect& hermes = *answer::find_dialect("hermes");
  const std::string call = hermes.write({"get_time", "{}"});
  const std::string opened =
      grammar_of("", "\"required\"", false, "model",
                 "{% for m in messages %}{{ m.content }}{% endfor %}<tool_call></think><think>\n");
  EXPECT_EQ(verdict_of(opened, "hm <</th</think\n</think>\n\n" + call), verdict::whole);
  EXPECT_EQ(verdict_of(opened, call), verdict::begun) << "it is all thought";
  const std::string possible =
      grammar_of("", "\"required\"", false, "model",
                 "{# <tool_call><think></think> #}{% for m in messages %}{{ m.content }}"
                 "{% endfor %}");
  EXPECT_EQ(verdict_of(possible, call), verdict::whole);
  EXPECT_EQ(verdict_of(possible, "<think>hm</think>\n" + call), verdict::whole);
  const std::string closed =
      grammar_of("", "\"required\"", false, "model",
                 "{% for m in messages %}{{ m.content }}{% endfor %}<tool_call><think></think>\n");
  EXPECT_EQ(verdict_of(closed, call), verdict::whole);
  EXPECT_EQ(verdict_of(closed, "<think>hm</think>\n" + call), verdict::no);
}

}  // namespace
}  // namespace bitnet::chat
