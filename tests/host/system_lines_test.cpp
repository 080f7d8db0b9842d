// Lines of system prompts that change often: which are known as such, and where they go.
#include "openai/system_lines.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace bitnet::host::openai {
namespace {

using nlohmann::json;

generation_wish wish(bool keeps_header, bool moves_dates) {
  generation_wish out;
  out.keeps_billing_header = keeps_header;
  out.moves_date_lines = moves_dates;
  return out;
}

TEST(date_line, is_a_date_and_nothing_else) {
  const struct {
    std::string_view line;
    bool is;
  } rows[] = {
      {"Today's date: 2026-11-28", true},
      {"Today's date is Saturday, November 28, 2026.", true},
      {"Today\xe2\x80\x99s date is 28 Nov 2026", true},
      {"  todays date: 2026-11-28\r", true},
      {"Today is Saturday, 28 November 2026.", true},
      {"Current date: 2026-11-28", true},
      {"- Current date: 2026-11-28", true},
      {"* **Current date:** 2026-11-28", true},
      {"The current date is 2026-11-28.", true},
      {"Current date and time: 2026-11-28T10:00:00Z", true},
      {"Current time: 9:30 UTC", true},
      {"The current time is 23:59", true},
      {"Current datetime: 2026-11-28 10:00", true},
      {"Current date/time: 28.11.2026", true},
      {"Date: 2026-11-28", true},
      {"Date and time: 2026-11-28", true},
      {"", false},
      {"Today's date: unknown", false},
      {"Today's date is given by the user", false},
      {"Current date: {{date}}", false},
      {"Date: a column of the table 12345", false},
      {"Date formats: 2026-11-28", false},
      {"The date is 2026-11-28", false},
      {"Knowledge cutoff: 2024-06", false},
      {"Write tests. Today's date: 2026-11-28", false},
      {"Today we use version 2026.1", false},
      {"Current time: 123:45", false},
      {"Updated: 2026-11-28", false},
  };
  for (const auto& row : rows) EXPECT_EQ(is_date_line(row.line), row.is) << row.line;
  EXPECT_FALSE(is_date_line("Date: 2026-11-28 " + std::string(200, 'x'))) << "a paragraph";
}

TEST(system_lines, go_to_the_end) {
  const json of_day = "You help.\nToday's date: 2026-11-28\nBe brief.\n";
  const struct {
    const char* why;
    json before, after;
  } rows[] = {
      {"a text", of_day, "You help.\nBe brief.\nToday's date: 2026-11-28"},
      {"the first line", "Today is 2026-11-28.\nYou help.", "You help.\nToday is 2026-11-28."},
      {"two lines in their order", "Date: 2026-11-28\nA\nCurrent time: 9:30\nB",
       "A\nB\nDate: 2026-11-28\nCurrent time: 9:30"},
      {"one that is there already", "You help.\nDate: 2026-11-28", "You help.\nDate: 2026-11-28"},
      {"nothing but one", "Date: 2026-11-28", "Date: 2026-11-28"},
      {"none", "You help.\n", "You help.\n"},
      {"nothing", "", ""},
      {"parts",
       {{{"type", "text"}, {"text", "Date: 2026-11-28\nA\n"}},
        {{"type", "text"}, {"text", "B\n"}, {"cache_control", {{"type", "ephemeral"}}}}},
       {{{"type", "text"}, {"text", "A\n"}},
        {{"type", "text"},
         {"text", "B\nDate: 2026-11-28"},
         {"cache_control", {{"type", "ephemeral"}}}}}},
      {"a part that is nothing else",
       {{{"type", "text"}, {"text", "Date: 2026-11-28"}}, {{"type", "text"}, {"text", "B"}}},
       {{{"type", "text"}, {"text", "B\nDate: 2026-11-28"}}}},
      {"parts that are nothing else",
       json::array({{{"type", "text"}, {"text", "Date: 2026-11-28"}}}),
       json::array({{{"type", "text"}, {"text", "Date: 2026-11-28"}}})},
      {"parts that are no texts", {1, {{"text", 2}}, nullptr}, {1, {{"text", 2}}, nullptr}},
      {"no content", nullptr, nullptr},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    json content = row.before;
    EXPECT_EQ(settle_system(content, wish(true, true)), row.before != row.after);
    EXPECT_EQ(content, row.after);
    content = row.before;
    EXPECT_FALSE(settle_system(content, wish(true, false)));
    EXPECT_EQ(content, row.before);
  }
}

TEST(system_lines, of_bills_are_left_out) {
  const std::string header = "x-anthropic-billing-header: cc_version=2.1.3; cch=9f1;";
  const struct {
    const char* why;
    json before, after;
  } rows[] = {
      {"the first line", header + "\nYou help.", "You help."},
      {"nothing else", header, ""},
      {"a line that ends", header + "\n", ""},
      {"another line", "You help.\n" + header, "You help.\n" + header},
      {"a part of its own",
       {{{"type", "text"}, {"text", header}}, {{"type", "text"}, {"text", "You help."}}},
       json::array({{{"type", "text"}, {"text", "You help."}}})},
      {"the second part",
       {{{"type", "text"}, {"text", "You help."}}, {{"type", "text"}, {"text", header}}},
       {{{"type", "text"}, {"text", "You help."}}, {{"type", "text"}, {"text", header}}}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    json content = row.before;
    EXPECT_EQ(settle_system(content, wish(false, false)), row.before != row.after);
    EXPECT_EQ(content, row.after);
  }
}

// Of a chat, messages before all others; what does not change stays as it was written.
TEST(system_lines, are_those_of_the_first_messages) {
  const std::string written =
      R"([{"role":"system","content":"x-anthropic-billing-header: 1"},)"
      R"({"role":"developer","content":"Date: 2026-11-28\nA"},)"
      R"({"role":"user","content":"Date: 2026-11-28\nB", "z":1,"a":{"z":1, "a":2}},)"
      R"({"role":"system","content":"Date: 2026-11-28\nC"}])";
  const std::string wanted =
      R"([{"content":"A\nDate: 2026-11-28","role":"developer"},)"
      R"({"role":"user","content":"Date: 2026-11-28\nB", "z":1,"a":{"z":1, "a":2}},)"
      R"({"role":"system","content":"Date: 2026-11-28\nC"}])";
  EXPECT_EQ(settled_messages(written, wish(false, true)), wanted);
  EXPECT_EQ(settled_messages(written, wish(true, false)), written);
  json list = json::parse(written);
  settle_messages(list, wish(false, true));
  EXPECT_EQ(list, json::parse(wanted));
  for (const char* odd : {"[]", "[1]", R"([{"role":"system"}])", R"([{"role":1,"content":"a"}])",
                          R"([{"role":"system","content":"x-anthropic-billing-header: 1"}])"})
    EXPECT_EQ(settled_messages(odd, wish(false, true)), odd);
}

}  // namespace
}  // namespace bitnet::host::openai
