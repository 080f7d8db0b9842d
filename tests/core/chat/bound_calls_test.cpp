// Demanded calls that follow the schemas of tools. What a grammar of calls lets through is read by
// the dialect's own reader, and the arguments that it reads are judged by the grammar of the schema
// alone, and the other way round.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <regex>

#include "answer/splitter.hpp"
#include "chat/prompt.hpp"
#include "grammar/automaton.hpp"
#include "grammar/gbnf.hpp"
#include "schema/compile.hpp"
#include "small_vocabulary.hpp"

namespace bitnet::chat {
namespace {

result<chat_prompt> prompt_of(const std::string& tools, std::string_view dialect,
                              std::string_view choice = "\"required\"") {
  const auto tokens = vocabulary({}, "");
  const source from(tokens);
  const auto talk = read_conversation(
      {R"([{"role": "user", "content": "Hi"}])", tools, choice, std::string_view()});
  if (!talk) return std::unexpected(talk.error());
  return make_prompt(from, tool_support_of("raw", from), *talk,
                     {.form = "raw", .dialect = dialect, .one_call = true});
}

std::string tool_text(std::string_view name, std::string_view schema, bool strict = false) {
  return R"({"type": "function", "function": {"name": ")" + std::string(name) + R"(", "strict": )" +
         (strict ? "true" : "false") + R"(, "parameters": )" + std::string(schema) + "}}";
}

grammar::automaton states_of(const std::string& gbnf) {
  auto rules = grammar::parse_gbnf(gbnf);
  if (!rules) throw std::runtime_error(rules.error().message + "\n" + gbnf);
  return grammar::automaton(*std::move(rules));
}

bool takes(grammar::automaton& states, std::string_view text) {
  states.begin_work();
  const auto at = states.next(states.start(), text);
  return at != grammar::automaton::dead && states.is_complete(at);
}

// The one call of an answer, as the program gets it; nothing for text, or what is malformed.
std::optional<answer::call> call_of(std::string_view dialect, const std::string& tools,
                                    std::string_view text) {
  answer::splitter split({.dialect = answer::find_dialect(dialect),
                          .known = *answer::parse_tools(tools, "tools"),
                          .thinks = false,
                          .id_prefix = ""});
  std::vector<answer::part> parts = split.take(text);
  const auto rest = split.finish();
  parts.insert(parts.end(), rest.begin(), rest.end());
  if (parts.size() != 3 || parts[0].what != answer::part::kind::call_begins) return std::nullopt;
  return answer::call{parts[0].name, parts[1].text};
}

// Texts of an automaton at random, with a liking for what ends a value.
class sampler {
 public:
  explicit sampler(uint32_t seed) : random_(seed) {}

  std::string text(grammar::automaton& states) {
    static const std::string ends[] = {
        "\"",          "}",    "]",   ")",   "\n",  "\n</parameter>\n",
        "</function>", ",",    "\"}", "</",  "```", "<|",
        ">\n",         "null", "12",  "None"};
    std::string out;
    auto at = states.start();
    states.begin_work();
    while (out.size() < 1500 && !(states.is_complete(at) && random_() % 2 == 0)) {
      std::string piece(1, static_cast<char>(0x20 + random_() % 95));
      if (random_() % 4 == 0) piece = ends[random_() % std::size(ends)];
      const auto next = states.next(at, piece);
      if (next != grammar::automaton::dead) {
        out += piece;
        at = next;
      }
      if (const auto only = only_byte(states, at); only != '\0') {
        out += only;
        at = states.next(at, std::string_view(&only, 1));
      }
      if (++tries_ > 200'000) break;
    }
    return states.is_complete(at) ? out : "";
  }

 private:
  // The byte that must come, if but one may.
  static char only_byte(grammar::automaton& states, grammar::automaton::state at) {
    char found = '\0';
    if (states.is_complete(at)) return '\0';
    for (int b = 1; b < 256; ++b) {
      const char c = static_cast<char>(b);
      if (states.next(at, std::string_view(&c, 1)) == grammar::automaton::dead) continue;
      if (found != '\0') return '\0';
      found = c;
    }
    return found;
  }

  std::mt19937 random_;
  int tries_ = 0;
};

constexpr const char* schemas[] = {
    R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer",
        "minimum": 1, "maximum": 14}, "unit": {"enum": ["C", "F"]}}, "required": ["city", "days"],
        "additionalProperties": false})",
    R"({"type": "object", "properties": {"on": {"type": "boolean"}, "at": {"type": ["null",
        "number"]}, "list": {"type": "array", "items": {"type": ["boolean", "string"],
        "maxLength": 3}, "maxItems": 3}}, "required": ["list", "on"]})",
    R"({"type": "object", "properties": {"name": {"type": ["string", "null"], "maxLength": 9},
        "any": {"anyOf": [{"type": "string", "maxLength": 6}, {"type": "integer", "minimum": 10}]},
        "place": {"type": "object", "properties": {"x": {"const": null}, "y": {"type": "integer"}},
        "required": ["x"], "additionalProperties": false}}, "required": ["any"],
        "additionalProperties": {"type": "boolean"}})",
    R"({"$defs": {"t": {"type": "object", "properties": {"v": {"pattern": "^[a-c]*$",
        "type": "string"}, "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/t"}]}},
        "required": ["v", "next"], "additionalProperties": false}}, "$ref": "#/$defs/t"})",
    R"({"type": "object", "additionalProperties": false})",
};

const char* const dialects[] = {"hermes", "tagged", "llama3", "minicpm", "gemma"};

TEST(bound_calls, have_arguments_that_the_schema_takes) {
  for (const char* dialect : dialects)
    for (const char* schema : schemas) {
      SCOPED_TRACE(std::string(dialect) + " " + schema);
      const std::string tools = "[" + tool_text("other", "{}") + "," + tool_text("f", schema) + "]";
      const auto prompt =
          prompt_of(tools, dialect, R"({"type": "function", "function": {"name": "f"}})");
      ASSERT_TRUE(prompt) << prompt.error().message;
      EXPECT_EQ(prompt->unbound, "");
      auto calls = states_of(prompt->grammar);
      grammar::automaton judge(*schema::compile(schema));
      sampler sample(5);
      int n = 0;
      for (int i = 0; i < 40; ++i) {
        const std::string text = sample.text(calls);
        if (text.empty()) continue;
        ++n;
        const auto read = call_of(dialect, tools, text);
        ASSERT_TRUE(read) << text;
        EXPECT_EQ(read->name, "f");
        EXPECT_TRUE(takes(judge, read->arguments)) << text << "\n" << read->arguments;
      }
      EXPECT_GT(n, 5);
    }
}

// Where arguments may come that the schema does not list, tags leave them out, and Python those
// whose names are none of its own; one text has such a form for every object in the other schemas.
// Calls have shorter ones, which readers can hold.
const std::regex long_number("[0-9]{19}|[eE][-+]?[0-9]{3}");

TEST(bound_calls, take_each_object_that_the_schema_takes) {
  for (const char* dialect : dialects)
    for (const char* schema : schemas) {
      SCOPED_TRACE(std::string(dialect) + " " + schema);
      const std::string tools = "[" + tool_text("f", schema) + "]";
      const auto prompt = prompt_of(tools, dialect);
      ASSERT_TRUE(prompt) << prompt.error().message;
      auto calls = states_of(prompt->grammar);
      grammar::automaton objects(*schema::compile(schema));
      const bool is_json =
          std::string_view(dialect) == "hermes" || std::string_view(dialect) == "llama3";
      const bool is_closed = schema != schemas[1] && schema != schemas[2];
      sampler sample(6);
      int n = 0;
      for (int i = 0; i < 40; ++i) {
        const std::string object = sample.text(objects);
        if (object.empty() || std::regex_search(object, long_number)) continue;
        if (!is_json && (object.contains("```") || object.contains("</parameter>")))
          continue;  // it would end the call
        const answer::call one{"f", object};
        const std::string text = answer::find_dialect(dialect)->write(one);
        const bool taken = takes(calls, text);
        n += taken ? 1 : 0;
        EXPECT_TRUE(taken || !(is_json || is_closed)) << text;
      }
      EXPECT_GT(n, 0);
    }
}

struct row {
  const char* arguments;
  bool fits;
};

TEST(bound_calls, reject_what_the_schema_rejects) {
  constexpr row rows[] = {
      {R"({"city": "Bonn", "days": 3})", true},
      {R"({"city": "Bonn", "days": 14, "unit": "C"})", true},
      {R"({"city": "12", "days": 3})", true},
      {R"({"city": "", "days": 3})", true},
      {R"({"city": "true\n\"x\"", "days": 3})", true},
      {R"({"city": "Bonn"})", false},
      {R"({"city": "Bonn", "days": 15})", false},
      {R"({"city": "Bonn", "days": "3"})", false},
      {R"({"days": 3, "city": "Bonn"})", false},
      {R"({"city": "Bonn", "city": "Bonn", "days": 3})", false},
      {R"({"city": "Bonn", "days": 3, "unit": "K"})", false},
      {R"({"city": "Bonn", "days": 3, "more": 1})", false},
      {R"({})", false},
  };
  for (const char* dialect : dialects) {
    const std::string tools = "[" + tool_text("f", schemas[0]) + "]";
    const auto prompt = prompt_of(tools, dialect);
    ASSERT_TRUE(prompt) << prompt.error().message;
    auto states = states_of(prompt->grammar);
    for (const row& r : rows) {
      if (std::string_view(dialect) == "tagged" && std::string_view(r.arguments).contains("\"3\""))
        continue;  // it is written as 3
      const std::string text = answer::find_dialect(dialect)->write({"f", r.arguments});
      EXPECT_EQ(takes(states, text), r.fits) << dialect << ": " << text;
    }
  }
}

// A string that the reader would take for a number or null is no text of a parameter that may be
// one; where it may be a string alone, each is one.
TEST(bound_calls, in_tags_are_of_the_type_that_is_read) {
  const std::string tools = "[" + tool_text("f", schemas[2]) + "]";
  const auto prompt = prompt_of(tools, "tagged");
  ASSERT_TRUE(prompt) << prompt.error().message;
  auto states = states_of(prompt->grammar);
  grammar::automaton judge(*schema::compile(schemas[2]));
  struct {
    const char* any;
    bool fits;
  } constexpr cases[] = {{"x", true},     {"10", true},    {"5", false},     {" 5", false},
                         {"5x", true},    {"-1.5", false}, {"1e5", false},   {"null", false},
                         {"nulls", true}, {"[1]", false},  {"\"x\"", false}, {"", true}};
  for (const auto& one : cases) {
    const std::string text = std::string("<tool_call>\n<function=f>\n<parameter=any>\n") + one.any +
                             "\n</parameter>\n</function>\n</tool_call>";
    EXPECT_EQ(takes(states, text), one.fits) << one.any;
    const auto read = call_of("tagged", tools, text);
    ASSERT_TRUE(read) << text;
    EXPECT_TRUE(!one.fits || takes(judge, read->arguments)) << read->arguments;
  }
}

TEST(bound_calls, say_which_tools_are_not_bound) {
  const std::string no = R"({"type": "object", "properties": {"a": {"not": {}}}})";
  for (const char* dialect : dialects) {
    SCOPED_TRACE(dialect);
    const std::string tools = "[" + tool_text("f", schemas[0]) + "," + tool_text("g", no) + "]";
    const auto prompt = prompt_of(tools, dialect);
    ASSERT_TRUE(prompt) << prompt.error().message;
    EXPECT_TRUE(prompt->unbound.starts_with(
        "g: tools[1].function.parameters#/properties/a/not: not is not supported"))
        << prompt->unbound;
    EXPECT_EQ(std::ranges::count(prompt->unbound, '\n'), 1);
    auto states = states_of(prompt->grammar);
    const answer::dialect& form = *answer::find_dialect(dialect);
    EXPECT_TRUE(takes(states, form.write({"g", R"({"a": [1]})"})));
    EXPECT_FALSE(takes(states, form.write({"f", "{}"})));
    // A tool that is not demanded is not looked at.
    const auto other =
        prompt_of(tools, dialect, R"({"type": "function", "function": {"name": "f"}})");
    ASSERT_TRUE(other);
    EXPECT_EQ(other->unbound, "");
    const auto free = prompt_of(tools, dialect, "\"auto\"");
    ASSERT_TRUE(free);
    EXPECT_EQ(free->grammar + free->unbound, "");
  }
}

TEST(bound_calls, of_strict_tools_are_bound_or_rejected) {
  const std::string no = R"({"type": "object", "properties": {"a": {"not": {}}}})";
  const std::string tools = "[" + tool_text("f", "{}") + "," + tool_text("g", no, true) + "]";
  const auto prompt = prompt_of(tools, "hermes");
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().status, BITNET_UNSUPPORTED);
  EXPECT_TRUE(prompt.error().message.starts_with(
      "tools[1].function.parameters#/properties/a/not: not is not supported"))
      << prompt.error().message;
  EXPECT_TRUE(prompt_of(tools, "hermes", "\"auto\""));
  const auto none = prompt_of("[" + tool_text("g", R"({"type": "string"})", true) + "]", "hermes");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, BITNET_INVALID_ARGUMENT) << none.error().message;
  const auto name = prompt_of(
      "[" + tool_text("g", R"({"properties": {"a b": {}}, "required": ["a b"]})", true) + "]",
      "gemma");
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().status, BITNET_UNSUPPORTED) << name.error().message;
}

// Schemas of all tools share one bound of work and one of the grammar's size.
TEST(bound_calls, have_bounds_of_all_tools) {
  const std::string wide = R"({"properties": {"a": {"type": "string", "maxLength": 2000}}})";
  std::string tools = "[";
  for (int i = 0; i < 12; ++i)
    tools += (i > 0 ? "," : "") + tool_text("f" + std::to_string(i), wide);
  tools += "]";
  const auto prompt = prompt_of(tools, "hermes");
  ASSERT_TRUE(prompt) << prompt.error().message;
  EXPECT_NE(prompt->unbound.find("the grammar of all tools would have more than"),
            std::string::npos)
      << prompt->unbound;
  EXPECT_FALSE(prompt->unbound.starts_with("f0:"));
  auto states = states_of(prompt->grammar);
  EXPECT_TRUE(takes(states, answer::find_dialect("hermes")->write({"f11", R"({"a": "b"})"})));
}

}  // namespace
}  // namespace bitnet::chat
