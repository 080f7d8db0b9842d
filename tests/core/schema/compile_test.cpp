// What is a schema, what each keyword lets through, and what is rejected in which words. Random
// schemas are judged by other programs in tests/schema.
#include "schema/compile.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "grammar/automaton.hpp"
#include "grammar/gbnf.hpp"
#include "grammar/gbnf_text.hpp"

namespace bitnet::schema {
namespace {

bool takes(grammar::automaton& states, std::string_view text) {
  states.begin_work();
  return states.is_complete(states.next(states.start(), text));
}

struct row {
  const char* why;
  const char* schema;
  std::vector<const char*> taken;
  std::vector<const char*> rejected;
};

const row rows[] = {
    {"types",
     R"({"type":["null","boolean"]})",
     {"null", "true", "false"},
     {"0", "\"\"", "nul", " null"}},
    {"any value",
     "{}",
     {"null", "[1, {\"a\":\"b\"}]", "-0.5e+7", "\"\\\"\xc3\xa9\""},
     {"", "[1,]"}},
    {"one blank behind : and , is the only white space",
     R"({"properties":{"a":{}}})",
     {"{\"a\":1,\"b\":2}", "{\"a\": 1, \"b\": 2}"},
     {"{\"a\":  1}", "{ \"a\":1}", "{\"a\" :1}", "{\"a\":1 }"}},
    {"integers have no fraction",
     R"({"type":"integer"})",
     {"0", "-12"},
     {"1.0", "01", "+1", "1e2"}},
    {"bounds of integers",
     R"({"type":"integer","minimum":-12,"exclusiveMaximum":105})",
     {"-12", "-9", "0", "-0", "99", "104"},
     {"-13", "105", "-012", "1000"}},
    {"bounds of integers that are none",
     R"({"type":"integer","minimum":0.5,"maximum":2.5})",
     {"1", "2"},
     {"0", "3", "-1"}},
    {"bounds of numbers",
     R"({"type":"number","exclusiveMinimum":-0.25,"maximum":10.5})",
     {"-0.249", "0", "10.5", "10.50", "9.99", "-0.2"},
     {"-0.25", "-0.250", "10.51", "11", "1e0", "-1"}},
    {"multiples",
     R"({"type":"integer","multipleOf":7,"minimum":0})",
     {"0", "7", "14", "700"},
     {"1", "13", "701"}},
    {"multiples of a part", R"({"type":"number","multipleOf":0.01})", {"1.25", "3"}, {"1.255"}},
    {"lengths count characters, not bytes",
     R"({"type":"string","minLength":2,"maxLength":3})",
     {"\"\xc3\xa9\xf0\x9f\x98\x80\"", "\"a\\nb\""},
     {"\"\xc3\xa9\"", "\"abcd\""}},
    {"a pattern may be anywhere, but for anchors",
     R"({"type":"string","pattern":"b+$|^c"})",
     {"\"abb\"", "\"c\"", "\"cx\""},
     {"\"ba\"", "\"ac\"", "\"\""}},
    {"escapes are one form each",
     R"({"type":"string","pattern":"^[\"\\\\\\n]$"})",
     {"\"\\\"\"", "\"\\\\\"", "\"\\n\""},
     {"\"\\u000a\"", "\"n\"", "\"\"\""}},
    {"control characters where nothing else may come",
     R"({"enum":["\u0001\u001f"]})",
     {"\"\\u0001\\u001f\""},
     {"\"\\u0002\""}},
    {"days of months",
     R"({"format":"date","type":"string"})",
     {"\"2024-02-29\"", "\"2000-02-29\""},
     {"\"2023-02-29\"", "\"1900-02-29\"", "\"2024-04-31\"", "\"0000-01-01\""}},
    {"members in the order of properties, optional ones left out",
     R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},
         "required":["b"],"additionalProperties":false})",
     {"{\"b\":null}", "{\"a\":null,\"b\":null,\"c\":null}", "{\"b\":null,\"c\":null}"},
     {"{}", "{\"a\":null}", "{\"b\":null,\"a\":null}", "{\"b\":null,\"b\":null}", "{\"d\":1}"}},
    {"other members come last and have other names",
     R"({"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":{"type":"integer"}})",
     {"{\"a\":null,\"b\":1}", "{\"ab\":1}", "{}"},
     {"{\"a\":1}", "{\"b\":null}", "{\"b\":1,\"a\":null}"}},
    {"patterns of names",
     R"({"type":"object","patternProperties":{"^x":{"type":"null"},"y$":{"enum":[null,1]}},
         "additionalProperties":false})",
     {"{\"x\":null}", "{\"y\":1}", "{\"xy\":null}"},
     {"{\"xy\":1}", "{\"a\":null}"}},
    {"a required name that is not listed",
     R"({"type":"object","required":["n"],"additionalProperties":{"type":"integer"}})",
     {"{\"n\":1}", "{\"n\":1,\"m\":2}"},
     {"{}", "{\"m\":2}", "{\"n\":\"\"}"}},
    {"numbers of members",
     R"({"type":"object","properties":{"a":{},"b":{},"c":{}},"minProperties":1,"maxProperties":2,
         "additionalProperties":false})",
     {"{\"a\":1}", "{\"a\":1,\"c\":1}"},
     {"{}", "{\"a\":1,\"b\":1,\"c\":1}"}},
    {"lists",
     R"({"type":"array","prefixItems":[{"type":"null"}],"items":{"type":"integer"},"minItems":1,
         "maxItems":3})",
     {"[null]", "[null,1, 2]"},
     {"[]", "[1]", "[null,1,2,3]", "[null,null]"}},
    {"an item that cannot be ends a list",
     R"({"type":"array","prefixItems":[{"type":"null"}],"items":false})",
     {"[]", "[null]"},
     {"[null,1]"}},
    {"values as they are",
     R"({"enum":["a",1.50,{"k":[true]}]})",
     {"\"a\"", "1.5", "{\"k\":[true]}"},
     {"\"b\"", "1.50", "{}"}},
    {"combinations",
     R"({"type":"string","anyOf":[{"maxLength":1},{"pattern":"^x"}],"allOf":[{"minLength":1}]})",
     {"\"a\"", "\"xyz\""},
     {"\"\"", "\"ab\""}},
    {"cases that a member distinguishes",
     R"({"oneOf":[{"type":"object","properties":{"k":{"const":1}},"required":["k"]},
                  {"type":"object","properties":{"k":{"const":2}},"required":["k"]}]})",
     {"{\"k\":1}", "{\"k\":2}"},
     {"{\"k\":3}", "{}"}},
    {"a schema that contains itself",
     R"({"type":"object","properties":{"l":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},
         "required":["l"],"additionalProperties":false})",
     {"{\"l\":null}", "{\"l\":{\"l\":null}}"},
     {"{\"l\":{}}", "{}"}},
    {"a path with escapes",
     R"({"$defs":{"a/b~ c":{"const":1}},"$ref":"#/$defs/a~1b~0%20c"})",
     {"1"},
     {"2"}},
    {"notes are no keywords",
     R"({"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://a.example/s",
         "title":"t","description":"d","default":2,"examples":[3],"x-note":{"not":1},"const":1})",
     {"1"},
     {"2", "3"}},
};

TEST(json_schema, keywords_say_what_may_come) {
  for (const row& r : rows) {
    auto rules = compile(r.schema);
    ASSERT_TRUE(rules) << r.why << ": " << rules.error().message;
    grammar::automaton states(*std::move(rules));
    for (const char* text : r.taken) EXPECT_TRUE(takes(states, text)) << r.why << ": " << text;
    for (const char* text : r.rejected) EXPECT_FALSE(takes(states, text)) << r.why << ": " << text;
  }
}

// The rules of a schema as a text of GBNF let the same values through.
TEST(json_schema, has_the_same_texts_as_gbnf) {
  for (const row& r : rows) {
    const auto rules = compile(r.schema);
    ASSERT_TRUE(rules) << r.why << ": " << rules.error().message;
    const auto text = grammar::as_gbnf(*rules, "root");
    ASSERT_TRUE(text) << r.why << ": " << text.error().message;
    auto again = grammar::parse_gbnf(*text);
    ASSERT_TRUE(again) << r.why << ": " << again.error().message;
    grammar::automaton states(*std::move(again));
    for (const char* one : r.taken) EXPECT_TRUE(takes(states, one)) << r.why << ": " << one;
    for (const char* one : r.rejected) EXPECT_FALSE(takes(states, one)) << r.why << ": " << one;
  }
}

struct wrong_row {
  const char* schema;
  bitnet_status status;
  const char* message;
};

constexpr bitnet_status invalid = BITNET_INVALID_ARGUMENT, unsupported = BITNET_UNSUPPORTED;
const wrong_row wrong_rows[] = {
    {"", invalid, "no JSON at line 1, column 1"},
    {"{\"type\":\n  }", invalid, "no JSON at line 2, column 3"},
    {"{\"a\":1,\"a\":2}", invalid, "the name 'a' is there twice"},
    {"3", invalid, "at #: expected a schema, which is an object, true or false; found a number"},
    {R"({"properties":{"a":{"type":"text"}}})", invalid, "at #/properties/a/type: type expects"},
    {R"({"properties":{"a/b":{"not":{}}}})", unsupported, "at #/properties/a~1b/not: not is not"},
    {R"({"$defs":{"unused":{"if":{}}}})", unsupported, "at #/$defs/unused/if: if is not supported"},
    {R"({"requird":["a"]})", unsupported, "the keyword 'requird' is not known"},
    {R"({"uniqueItems":true})", unsupported, "at #/uniqueItems"},
    {R"({"minLength":-1})", invalid, "minLength expects an integer of at least 0"},
    {R"({"multipleOf":0.3})", unsupported, "multiples are supported of"},
    {R"({"format":"regex"})", unsupported, "the format 'regex' is not supported"},
    {R"({"pattern":"a(b"})", invalid, "at #/pattern: character 4 of the pattern: expected ')'"},
    {R"j({"pattern":"(?=a)"})j", unsupported, "lookahead and lookbehind"},
    {R"({"pattern":"(a)\\1"})", unsupported, "references to groups"},
    {R"({"pattern":"a.{20}b"})", unsupported, "more than 16384 states"},
    {R"j({"pattern":"((((a{99}){99}){99}){99})"})j", unsupported, "more than 65536 parts"},
    {R"({"$ref":"#"})", invalid, "the schema stands for itself"},
    {R"({"$ref":"#/$defs/a"})", invalid, "the reference leads nowhere"},
    {R"({"$ref":"https://b.example/s"})", unsupported, "only references into this schema"},
    {R"({"oneOf":[{"type":"integer"},{"type":"number","minimum":2}]})", unsupported,
     "the cases 0 and 1 of oneOf can both be valid"},
    {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", invalid,
     "no value is valid by the schema"},
    {"false", invalid, "no value is valid by the schema"},
    {R"({"type":"array","minItems":1000000000})", unsupported, "more than 262144 parts"},
    {R"({"maxLength":1000000000,"type":"string"})", unsupported, "more than 16384 states"},
    {R"({"type":"object","minProperties":2})", unsupported, "minProperties of 2 cannot be counted"},
    {R"({"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/$defs/a","minLength":1,
         "$defs":{"a":{}}})",
     unsupported, "drafts 6 and 7 ignore a keyword beside $ref"},
    {R"({"$schema":"http://json-schema.org/draft-04/schema#"})", unsupported,
     "dialect is not known"},
    {R"({"items":[{}]})", unsupported, "use prefixItems"},
};

TEST(json_schema, invalid_schemas_are_rejected_by_path) {
  for (const wrong_row& r : wrong_rows) {
    const auto rules = compile(r.schema);
    ASSERT_FALSE(rules) << r.schema;
    EXPECT_EQ(rules.error().status, r.status) << r.schema << ": " << rules.error().message;
    EXPECT_EQ(rules.error().message.find("the JSON schema"), 0U) << rules.error().message;
    EXPECT_NE(rules.error().message.find(r.message), std::string::npos)
        << r.schema << ": " << rules.error().message;
  }
}

std::string repeated(const std::string& text, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += text;
  return out;
}

std::string listed(int n, const std::function<std::string(int)>& one) {
  std::string out;
  for (int i = 0; i < n; ++i) out += (i > 0 ? "," : "") + one(i);
  return out;
}

// Each of these would take hours, or all memory, without a bound.
TEST(json_schema, hostile_schemas_end_soon) {
  const auto any_of = [](int i) {
    const std::string n = std::to_string(i);
    return R"({"anyOf":[{"minLength":)" + n + R"(},{"maxLength":)" + n + R"(},{"pattern":")" + n +
           "\"}]}";
  };
  const std::vector<std::string> schemas = {
      repeated("[", 100'000),
      repeated("{\"items\":", 5000) + "{}" + repeated("}", 5000),
      R"({"allOf":[)" + listed(40, any_of) + "]}",
      R"({"$defs":{)" +
          listed(5000,
                 [](int i) {
                   return "\"" + std::to_string(i) + R"(":{"$ref":"#/$defs/)" +
                          std::to_string(i + 1) + "\"}";
                 }) +
          R"(},"$ref":"#/$defs/0"})",
      R"({"enum":[)" + listed(100'000, [](int i) { return std::to_string(i); }) + "]}",
      R"({"enum":[)" + listed(60'000, [](int i) { return "\"" + std::to_string(i) + "\""; }) + "]}",
      R"({"properties":{)" +
          listed(30'000, [](int i) { return "\"" + std::to_string(i) + "\":{}"; }) +
          R"(},"maxProperties":5000})",
      R"({"patternProperties":{)" +
          listed(20, [](int i) { return "\"" + std::to_string(i) + "\":{}"; }) + "}}",
      R"({"pattern":"(a|aa)+$(x+x+)+y|.*.*.*.*=.{40}"})",
      R"({"oneOf":[)" +
          listed(3000, [](int i) { return "{\"const\":" + std::to_string(i) + "}"; }) + "]}",
      R"({"minimum":1e999999999})",
  };
  for (const std::string& schema : schemas) {
    const auto start = std::chrono::steady_clock::now();
    const auto rules = compile(schema);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!rules) {
      EXPECT_LT(rules.error().message.size(), 600U);
    }
    EXPECT_LT(took.count(), 30) << schema.substr(0, 60);  // a second, but for sanitizers
  }
}

}  // namespace
}  // namespace bitnet::schema
