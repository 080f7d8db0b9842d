// Answers in one piece, and in any two pieces: a tag may be cut anywhere.
#include "library/answer_parts.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace bitnet::host {
namespace {

// r(...) is thinking, t(...) a call, ")" missing where it is not ended.
std::string written(const std::vector<answer_piece>& pieces) {
  std::string out;
  for (const answer_piece& one : pieces) {
    if (one.what == answer_piece::kind::begins) out += one.of == part::reasoning ? "r(" : "t(";
    out += one.text;
    if (one.what == answer_piece::kind::ends) out += ")";
  }
  return out;
}

std::vector<answer_piece> all_pieces(const std::vector<std::string_view>& texts) {
  answer_splitter splitter;
  std::vector<answer_piece> out;
  const auto add = [&](std::vector<answer_piece> more) {
    out.insert(out.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  };
  for (const std::string_view text : texts) add(splitter.take(text));
  add(splitter.finish());
  return out;
}

TEST(answer_parts, are_told_apart_wherever_the_text_is_cut) {
  const struct {
    const char* why;
    std::string_view text;
    const char* expected;
  } rows[] = {
      {"no parts", "Hello <b>you</b>.", "Hello <b>you</b>."},
      {"nothing", "", ""},
      {"thinking first", "<think>\nhm\n</think>\n\nYes.", "r(\nhm\n)\n\nYes."},
      {"white space before it", " \n<think>a</think>b", "r(a)b"},
      {"not where an answer begins", "Write <think>a</think>.", "Write <think>a</think>."},
      {"no second time", "<think>a</think><think>b</think>", "r(a)<think>b</think>"},
      {"it is not nested", "<think>a<think>b</think>c", "r(a<think>b)c"},
      {"never ended", "<think>a</thin", "r(a</thin"},
      {"an end without a beginning", "a</think>b", "a</think>b"},
      {"almost a tag", "<thinking>a", "<thinking>a"},
      {"the beginning of a tag, and no more", "<thi", "<thi"},
      {"a tag within a beginning of one", "<think>a</t</think>b", "r(a</t)b"},
      {"a call", "<tool_call>{}</tool_call>", "t({})"},
      {"calls between texts", "a<tool_call>1</tool_call>b<tool_call>2</tool_call>", "at(1)bt(2)"},
      {"a call in the thinking is a thought", "<think><tool_call></think>b", "r(<tool_call>)b"},
      {"a call after it", "<think>a</think>\n<tool_call>1</tool_call>", "r(a)\nt(1)"},
      {"a call that is not ended", "a<tool_call>{\"na", "at({\"na"},
      {"white space only", " \n", " \n"},
  };
  for (const auto& r : rows) {
    EXPECT_EQ(written(all_pieces({r.text})), r.expected) << r.why;
    for (std::size_t cut = 0; cut <= r.text.size(); ++cut)
      EXPECT_EQ(written(all_pieces({r.text.substr(0, cut), r.text.substr(cut)})), r.expected)
          << r.why << ", cut at " << cut;
    std::vector<std::string_view> letters;
    for (std::size_t i = 0; i < r.text.size(); ++i) letters.push_back(r.text.substr(i, 1));
    EXPECT_EQ(written(all_pieces(letters)), r.expected) << r.why << ", letter by letter";
  }
}

TEST(answer_parts, are_given_as_soon_as_they_are_known) {
  answer_splitter splitter;
  EXPECT_EQ(written(splitter.take("<th")), "");
  EXPECT_EQ(written(splitter.take("ink>a")), "r(a");
  EXPECT_EQ(written(splitter.take("b<")), "b");
  EXPECT_EQ(written(splitter.take("c")), "<c");
  EXPECT_EQ(written(splitter.take("</think>d")), ")d");
}

TEST(answer_parts, are_a_message_in_json) {
  const struct {
    const char* why;
    std::string text;
    const char* expected;
  } rows[] = {
      {"text", " Hello.\n", R"({"role":"assistant","content":"Hello."})"},
      {"thinking", "<think>\na\n</think>\n\nb",
       R"({"role":"assistant","content":"b","reasoning_content":"a"})"},
      {"thinking of nothing", "<think>\n\n</think>\n\nb", R"({"role":"assistant","content":"b"})"},
      {"thinking without end", "<think>a",
       R"({"role":"assistant","content":"","reasoning_content":"a"})"},
      {"a call", "x\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1]}}\n</tool_call>",
       R"({"role":"assistant","content":"x","tool_calls":[{"name":"f","arguments":{"a":[1]}}]})"},
      {"without arguments", "<tool_call>{\"name\": \"f\"}</tool_call>",
       R"({"role":"assistant","content":"","tool_calls":[{"name":"f","arguments":{}}]})"},
      {"broken JSON, and a good one that is not ended",
       "<tool_call>{\"name\": f}</tool_call><tool_call>{\"name\": \"f\"}",
       R"({"role":"assistant","content":"","tool_calls":[{"text":"{\"name\": f}"},
           {"name":"f","arguments":{}}]})"},
      {"JSON that is no call", "<tool_call>[\"name\"]</tool_call>",
       R"({"role":"assistant","content":"","tool_calls":[{"text":"[\"name\"]"}]})"},
      {"a call in tags",
       "<tool_call>\n<function=f>\n<parameter=a b>\n x\ny \n</parameter>\n<parameter=n>\n1\n"
       "</parameter>\n</function>\n</tool_call>",
       R"({"role":"assistant","content":"","tool_calls":[{"name":"f",
           "arguments":{"a b":" x\ny ","n":"1"}}]})"},
      {"in one line, with the text of a tag in a value",
       "<tool_call><function=f><parameter=a><b></function></parameter></function></tool_call>",
       R"({"role":"assistant","content":"","tool_calls":[{"name":"f",
           "arguments":{"a":"<b></function>"}}]})"},
      {"in tags, without arguments", "<tool_call><function=f>\n</function></tool_call>",
       R"({"role":"assistant","content":"","tool_calls":[{"name":"f","arguments":{}}]})"},
      {"tags that are not ended", "<tool_call><function=f><parameter=a>1</parameter>",
       R"({"role":"assistant","content":"","tool_calls":[
           {"text":"<function=f><parameter=a>1</parameter>"}]})"},
      {"a value that is not ended", "<tool_call><function=f><parameter=a>1</function></tool_call>",
       R"({"role":"assistant","content":"","tool_calls":[
           {"text":"<function=f><parameter=a>1</function>"}]})"},
      {"text behind tags", "<tool_call><function=f></function>x</tool_call>",
       R"({"role":"assistant","content":"","tool_calls":[{"text":"<function=f></function>x"}]})"},
      {"tags without a name", "<tool_call><function=></function></tool_call>",
       R"({"role":"assistant","content":"","tool_calls":[{"text":"<function=></function>"}]})"},
      {"a name that is no text", "<tool_call>{\"name\": 1}</tool_call>",
       R"({"role":"assistant","content":"","tool_calls":[{"text":"{\"name\": 1}"}]})"},
  };
  for (const auto& r : rows)
    EXPECT_EQ(message_json(split_answer(r.text)), nlohmann::json::parse(r.expected)) << r.why;

  const std::string deep =
      R"({"name":"f","arguments":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_EQ(message_json(split_answer("<tool_call>" + deep + "</tool_call>"))["tool_calls"][0],
            nlohmann::json({{"text", deep}}))
      << "too deep to be built";
}

}  // namespace
}  // namespace bitnet::host
