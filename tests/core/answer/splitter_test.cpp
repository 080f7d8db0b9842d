// Answers of each dialect, whole and cut at every byte: the same calls, thinking and text.
#include "answer/splitter.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "answer/message.hpp"
#include "json/raw.hpp"
#include "json/reading.hpp"

namespace bitnet::answer {
namespace {

constexpr const char* tools_text = R"([
  {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"},
                   "exact": {"type": "boolean"}, "near": {"type": ["number", "null"]},
                   "list": {"type": "array"}}}}},
  {"type": "function", "function": {"name": "get_time"}}])";

tools known_tools() {
  return parse_tools(tools_text, "tools").value();
}

// r(...) is thinking, c0:name{...} a call, m(...) what is malformed; ")" is missing where the
// thinking has no end.
std::string written(const std::vector<part>& parts) {
  std::string out;
  for (const part& one : parts) {
    switch (one.what) {
      case part::kind::thinking_begins:
        out += "r(";
        break;
      case part::kind::thinking_ends:
        out += ")";
        break;
      case part::kind::call_begins:
        out += "<" + one.id + " " + one.name + " ";
        break;
      case part::kind::call_ends:
        out += ">";
        break;
      case part::kind::malformed:
        EXPECT_NE(one.name.find("expected"), std::string::npos) << one.text;
        out += "m(" + one.text + ")";
        break;
      default:
        out += one.text;
    }
  }
  return out;
}

struct how {
  const char* dialect = "hermes";
  bool thinks = false;
};

splitter opened(const how& asked) {
  return splitter({.dialect = find_dialect(asked.dialect),
                   .known = known_tools(),
                   .thinks = asked.thinks,
                   .id_prefix = "c"});
}

std::string in_pieces(const how& asked, const std::vector<std::string_view>& texts) {
  splitter split = opened(asked);
  std::vector<part> out;
  const auto add = [&](std::vector<part> more) {
    out.insert(out.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  };
  for (const std::string_view text : texts) add(split.take(text));
  add(split.finish());
  return written(out);
}

struct row {
  const char* why;
  how asked;
  std::string text;
  std::string expected;
};

void expect_rows(const std::vector<row>& rows) {
  for (const row& r : rows) {
    SCOPED_TRACE(r.why);
    const std::string_view text = r.text;
    EXPECT_EQ(in_pieces(r.asked, {text}), r.expected);
    for (std::size_t cut = 0; cut <= text.size(); ++cut)
      EXPECT_EQ(in_pieces(r.asked, {text.substr(0, cut), text.substr(cut)}), r.expected)
          << "cut at " << cut;
    std::vector<std::string_view> bytes;
    for (std::size_t i = 0; i < text.size(); ++i) bytes.push_back(text.substr(i, 1));
    EXPECT_EQ(in_pieces(r.asked, bytes), r.expected) << "byte by byte";
  }
}

TEST(splitter, separates_thinking_from_text) {
  expect_rows({
      {"no parts", {}, "Hello <b>you</b>.", "Hello <b>you</b>."},
      {"nothing", {}, "", ""},
      {"white space only", {}, " \n", " \n"},
      {"white space around a text is the model's", {}, " Hello \n", " Hello \n"},
      {"thinking first", {}, "<think>\nhm\n\nso\n</think>\n\nYes.\n", "r(hm\n\nso)Yes.\n"},
      {"white space before it", {}, " \n<think>a</think>b", "r(a)b"},
      {"thinking of nothing", {}, "<think>\n\n</think>\n\nb", "r()b"},
      {"not where an answer begins", {}, "Write <think>a</think>.", "Write <think>a</think>."},
      {"no second time", {}, "<think>a</think><think>b</think>", "r(a)<think>b</think>"},
      {"it is not nested", {}, "<think>a<think>b</think>c", "r(a<think>b)c"},
      {"never ended", {}, "<think>a</thin", "r(a</thin"},
      {"an end without a beginning", {}, "a</think>b", "a</think>b"},
      {"almost a tag", {}, "<thinking>a", "<thinking>a"},
      {"the beginning of a tag, and no more", {}, "<thi", "<thi"},
      {"a tag within a beginning of one", {}, "<think>a</t</think>b", "r(a</t)b"},
      {"the prompt opened it", {"hermes", true}, "hm\n</think>\n\nYes.", "r(hm)Yes."},
      {"the prompt opened it, and so does the model",
       {"hermes", true},
       "\n<think>hm</think>Yes.",
       "r(hm)Yes."},
      {"the prompt opened it, and nothing came", {"hermes", true}, "", "r("},
      {"a call in the thinking is a thought",
       {},
       "<think><tool_call>{}</tool_call></think>b",
       "r(<tool_call>{}</tool_call>)b"},
      {"MiniCPM's marks", {"minicpm"}, "<|thought_start|>\nhm\n<|thought_end|>\nYes.", "r(hm)Yes."},
      {"MiniCPM's marks, and no calls",
       {"none_minicpm"},
       "<|thought_start|>hm<|thought_end|><|tool_call_start|>f()<|tool_call_end|>",
       "r(hm)<|tool_call_start|>f()<|tool_call_end|>"},
      {"without calls these are text",
       {"none"},
       "<tool_call>{}</tool_call>",
       "<tool_call>{}</tool_call>"},
  });
}

TEST(splitter, reads_calls_in_json_between_tags) {
  expect_rows({
      {"one",
       {},
       "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
       "\"Bonn\"}}\n</tool_call>",
       "<c0 get_weather {\"city\": \"Bonn\"}>"},
      {"two behind thinking and a text",
       {},
       "<think>\nBoth.\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"get_time\"}\n</tool_call>\n"
       "<tool_call>{\"arguments\":{\"a\":[1,{}]},\"name\":\"f\"}</tool_call>\n",
       "r(Both.)I look.<c0 get_time {}><c1 f {\"a\":[1,{}]}>"},
      {"a text behind a call keeps the lines around it",
       {},
       "a\n<tool_call>{\"name\":\"f\"}</tool_call>\nb",
       "a<c0 f {}>\n\nb"},
      {"the end tag within a text",
       {},
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"</tool_call> \\\"\"}}</tool_call>",
       "<c0 f {\"a\": \"</tool_call> \\\"\"}>"},
      {"numbers stay as they were written",
       {},
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 12345678901234567890123, \"b\": "
       "1.10}}</tool_call>",
       "<c0 f {\"a\": 12345678901234567890123, \"b\": 1.10}>"},
      {"arguments as a JSON text",
       {},
       "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
       "<c0 f {\"a\": 1}>"},
      {"a list of calls",
       {},
       "<tool_call>[{\"name\": \"f\"}, {\"type\": \"function\", \"function\": {\"name\": "
       "\"g\", \"parameters\": null}}]</tool_call>",
       "<c0 f {}><c1 g {}>"},
      {"the form of its sister",
       {},
       "<tool_call>\n<function=f>\n</function>\n</tool_call>",
       "<c0 f {}>"},
      {"not ended, and whole", {}, "a <tool_call>{\"name\": \"f\"}", "a<c0 f {}>"},
      {"not ended, and not whole", {}, "a <tool_call>{\"na", "am(<tool_call>{\"na)"},
      {"not ended, nothing", {}, "a <tool_call>", "am(<tool_call>)"},
  });
  const std::string deep =
      "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":" + std::string(100'000, '[') +
      std::string(100'000, ']') + "}}</tool_call>";
  EXPECT_EQ(in_pieces({}, {deep}), "m(" + deep + ")");
}

TEST(splitter, gives_what_is_no_call_as_malformed) {
  expect_rows({
      {"broken JSON, and a good one behind it",
       {},
       "<tool_call>{\"name\": f}</tool_call>\n<tool_call>{\"name\": \"f\"}</tool_call>",
       "m(<tool_call>{\"name\": f}</tool_call>)<c0 f {}>"},
      {"JSON that is no call",
       {},
       "<tool_call>[\"name\"]</tool_call>",
       "m(<tool_call>[\"name\"]</tool_call>)"},
      {"an empty list", {}, "<tool_call>[]</tool_call>", "m(<tool_call>[]</tool_call>)"},
      {"a name that is no text",
       {},
       "<tool_call>{\"name\": 1}</tool_call>",
       "m(<tool_call>{\"name\": 1}</tool_call>)"},
      {"arguments that are no object",
       {},
       "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
       "m(<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>)"},
      {"half a surrogate pair",
       {},
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"\\ud800\"}}</tool_call>",
       "m(<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"\\ud800\"}}</tool_call>)"},
      {"no UTF-8",
       {},
       "<tool_call>{\"name\": \"\xff\"}</tool_call>",
       "m(<tool_call>{\"name\": \"\xff\"}</tool_call>)"},
  });
}

TEST(splitter, reads_calls_in_tags) {
  const how tagged{"tagged"};
  expect_rows({
      {"values have the types of the description", tagged,
       "<tool_call>\n<function=get_weather>\n<parameter=city>\n12\n</parameter>\n<parameter=days>\n"
       "3\n</parameter>\n<parameter=exact>\nTrue\n</parameter>\n<parameter=near>\nnull\n"
       "</parameter>\n<parameter=list>\n[\"a\", 1]\n</parameter>\n</function>\n</tool_call>",
       "<c0 get_weather {\"city\": \"12\", \"days\": 3, \"exact\": true, \"near\": null, \"list\": "
       "[\"a\", 1]}>"},
      {"a value of another type is a text", tagged,
       "<tool_call><function=get_weather><parameter=days>3.5</parameter><parameter=list>a"
       "</parameter></function></tool_call>",
       "<c0 get_weather {\"days\": \"3.5\", \"list\": \"a\"}>"},
      {"without a description it is JSON if it parses", tagged,
       "<tool_call><function=f><parameter=a>1</parameter><parameter=b>{\"c\": [true]}</parameter>"
       "<parameter=d>True</parameter><parameter=e>x y</parameter></function></tool_call>",
       "<c0 f {\"a\": 1, \"b\": {\"c\": [true]}, \"d\": \"True\", \"e\": \"x y\"}>"},
      {"lines and quotes within a value", tagged,
       "<tool_call>\n<function=get_weather>\n<parameter=city>\n a\n\"b\"\n\n</parameter>\n"
       "</function>\n</tool_call>",
       "<c0 get_weather {\"city\": \" a\\n\\\"b\\\"\\n\"}>"},
      {"without the outer tags, twice", tagged,
       "So: <function=get_time>\n</function>\n<function=f></function>",
       "So:<c0 get_time {}><c1 f {}>"},
      {"a tag within a value", tagged,
       "<tool_call><function=f><parameter=a><b></function></parameter></function></tool_call>",
       "<c0 f {\"a\": \"<b></function>\"}>"},
      {"the JSON of its sister", tagged, "<tool_call>{\"name\": \"f\"}</tool_call>", "<c0 f {}>"},
      {"a parameter that is not ended", tagged,
       "<tool_call><function=f><parameter=a>1</function></tool_call>",
       "m(<tool_call><function=f><parameter=a>1</function></tool_call>)"},
      {"a text behind it", tagged, "<tool_call><function=f></function>x</tool_call>",
       "m(<tool_call><function=f></function>x</tool_call>)"},
      {"no name", tagged, "<tool_call><function=></function></tool_call>",
       "m(<tool_call><function=></function></tool_call>)"},
  });
}

TEST(splitter, reads_calls_that_are_the_answer) {
  const how llama3{"llama3"};
  expect_rows({
      {"an object with parameters", llama3,
       "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Bonn {1}\"}}",
       "<c0 get_weather {\"city\": \"Bonn {1}\"}>"},
      {"several, and white space before", llama3,
       "\n{\"name\": \"get_time\", \"parameters\": {}}; {\"name\": \"get_time\"}\n",
       "<c0 get_time {}><c1 get_time {}>"},
      {"a text behind it", llama3, "{\"name\": \"get_time\"} I asked.", "<c0 get_time {}>I asked."},
      {"JSON that calls no tool is an answer", llama3, "{\"name\": \"Ann\", \"age\": 3}",
       "{\"name\": \"Ann\", \"age\": 3}"},
      {"not where the answer begins", llama3, "Call {\"name\": \"get_time\"}",
       "Call {\"name\": \"get_time\"}"},
      {"JSON that is not ended is text", llama3, "{\"name\": \"get_time\"",
       "{\"name\": \"get_time\""},
      {"behind the python tag", llama3,
       "<|python_tag|>{\"name\": \"get_time\", \"parameters\": {\"a\": 1}}; {\"name\": \"f\"}",
       "<c0 get_time {\"a\": 1}><c1 f {}>"},
      {"what was built in", llama3,
       "<|python_tag|>brave_search.call(query=\"cats \\\"and\\\" dogs\")",
       "<c0 brave_search {\"query\": \"cats \\\"and\\\" dogs\"}>"},
      {"code is no call", llama3, "<|python_tag|>print(1 + 2)", "m(<|python_tag|>print(1 + 2))"},
  });
}

TEST(splitter, reads_calls_in_python) {
  const how minicpm{"minicpm"};
  const how gemma{"gemma"};
  expect_rows({
      {"every kind of value", minicpm,
       "<|tool_call_start|>\n```python\nget_weather(city='it\\'s', days=-3, exact=True, near=None, "
       "list=[1, 'a', (2,), {'b': .5, 3: False}])\n```\n<|tool_call_end|>",
       "<c0 get_weather {\"city\": \"it's\", \"days\": -3, \"exact\": true, \"near\": null, "
       "\"list\": [1, \"a\", [2], {\"b\": 0.5, \"3\": false}]}>"},
      {"several lines, and thinking", minicpm,
       "<|thought_start|>\nBoth.\n<|thought_end|>\n<|tool_call_start|>\n```python\nget_time()\n"
       "get_weather(\"Bonn\", 2)\n```\n<|tool_call_end|>",
       "r(Both.)<c0 get_time {}><c1 get_weather {\"city\": \"Bonn\", \"days\": 2}>"},
      {"JSON in place of Python", minicpm,
       "<|tool_call_start|>[{\"name\": \"f\", \"arguments\": {}}]<|tool_call_end|>", "<c0 f {}>"},
      {"escapes of characters, and texts side by side", minicpm,
       "<|tool_call_start|>f(a=\"\\u00e9\\ud83d\\ude00\\x41\" 'b', c='''d\n'e' ''')"
       "<|tool_call_end|>",
       "<c0 f {\"a\": \"é😀Ab\", \"c\": \"d\\n'e' \"}>"},
      {"names of values are unknown", minicpm, "<|tool_call_start|>f(1)<|tool_call_end|>",
       "m(<|tool_call_start|>f(1)<|tool_call_end|>)"},
      {"half a surrogate pair", minicpm, "<|tool_call_start|>f(a='\\ud83d')<|tool_call_end|>",
       "m(<|tool_call_start|>f(a='\\ud83d')<|tool_call_end|>)"},
      {"code", minicpm, "<|tool_call_start|>x = 1<|tool_call_end|>",
       "m(<|tool_call_start|>x = 1<|tool_call_end|>)"},
      {"a fence of Gemma within an answer", gemma,
       "I look.\n```tool_code\nget_weather(city=\"Bonn\")\n```\nWait.",
       "I look.<c0 get_weather {\"city\": \"Bonn\"}>\n\nWait."},
      {"a list as the answer", gemma, "[get_weather(city='a]b'), get_time()]",
       "<c0 get_weather {\"city\": \"a]b\"}><c1 get_time {}>"},
      {"an object as the answer", gemma, "{\"name\": \"get_time\", \"parameters\": {}}",
       "<c0 get_time {}>"},
      {"a list that calls nothing", gemma, "[1, 2]", "[1, 2]"},
      {"another fence", gemma, "```python\nf()\n```", "```python\nf()\n```"},
  });
  const std::string deep =
      "<|tool_call_start|>f(a=" + std::string(100'000, '[') + ")<|tool_call_end|>";
  EXPECT_EQ(in_pieces(minicpm, {deep}), "m(" + deep + ")");
}

TEST(splitter, gives_parts_as_soon_as_they_are_known) {
  splitter split = opened({});
  EXPECT_EQ(written(split.take("<th")), "");
  EXPECT_FALSE(split.thinks());
  EXPECT_EQ(written(split.take("ink>a")), "r(a");
  EXPECT_TRUE(split.thinks());
  EXPECT_EQ(written(split.take("b<")), "b");
  EXPECT_EQ(written(split.take("c \n")), "<c");
  EXPECT_EQ(written(split.take("</think> d")), ")d");
  EXPECT_FALSE(split.thinks());
  EXPECT_EQ(written(split.take("<tool_call>{\"name\": \"f\"}</tool_call")), "");
  EXPECT_EQ(written(split.take(">")), "<c0 f {}>");
}

TEST(splitter, takes_long_calls_in_small_pieces_in_little_time) {
  splitter split = opened({});
  EXPECT_TRUE(split.take("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"").empty());
  const std::string piece(4, 'x');
  for (int i = 0; i < 200'000; ++i) EXPECT_TRUE(split.take(piece).empty());
  const auto parts = split.take("\"}}</tool_call>");
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_GT(parts[1].text.size(), 800'000U);
}

TEST(message, has_what_the_parts_have) {
  const struct {
    const char* why;
    const char* text;
    const char* expected;
  } rows[] = {
      {"text", " Hello.\n", R"({"role":"assistant","content":" Hello.\n"})"},
      {"thinking", "<think>\na\n</think>\n\nb",
       R"({"role":"assistant","content":"b","reasoning_content":"a"})"},
      {"calls alone", "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>",
       R"({"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function",
           "function":{"name":"f","arguments":"{\"a\":1}"}}]})"},
      {"what is malformed is content", "a <tool_call>x</tool_call>",
       R"({"role":"assistant","content":"a<tool_call>x</tool_call>"})"},
  };
  for (const auto& r : rows) {
    splitter split = opened({});
    message all;
    all.add(split.take(r.text));
    all.add(split.finish());
    EXPECT_EQ(all.written(), json::value::parse(r.expected)) << r.why;
  }
}

// The reader of JSON takes a zero byte for the end of the text.
TEST(json, has_no_zero_byte) {
  using namespace std::literals;
  for (const std::string_view text : {"0\0"sv, "0\0x"sv, "{}\0"sv, "\"\0\""sv, "[1,\0"sv}) {
    EXPECT_FALSE(json::is_whole(text));
    const auto read = json::read(text, "body");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message,
              "body: expected JSON, found a zero byte at " + std::to_string(text.find('\0')));
  }
}

TEST(dialects, read_what_they_write) {
  const call one{
      "get_weather",
      R"({"city": "Bonn \"</x>\" é", "days": 3, "exact": true, "near": null, "list": [1, "a"]})"};
  for (const dialect* used : dialects()) {
    if (used->write == nullptr) continue;
    const std::string text =
        used->write(one) + std::string(used->between_calls) + used->write({"get_time", "{}"});
    splitter split({.dialect = used, .known = known_tools(), .thinks = false, .id_prefix = ""});
    std::vector<part> parts = split.take(text);
    for (part& more : split.finish()) parts.push_back(std::move(more));
    ASSERT_EQ(parts.size(), 6U) << used->name << ": " << text << " -> " << written(parts);
    EXPECT_EQ(parts[0].name, one.name) << used->name;
    EXPECT_EQ(json::value::parse(parts[1].text), json::value::parse(one.arguments)) << used->name;
    EXPECT_EQ(parts[3].name, "get_time") << used->name;
  }
}

}  // namespace
}  // namespace bitnet::answer
