// What --shadow accepts, and what a report of a shadow is in a line.
#include "session/shadowing.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace bitnet::host {
namespace {

using nlohmann::json;

TEST(shadow_option, is_a_name_with_share_and_waiting_rows) {
  const struct {
    const char* text;
    const char* device;
    float share;
    uint32_t waiting;
    float tolerance = 0;
  } rows[] = {{"cpu", "cpu", 0.1F, 16},
              {"cuda:1,share=1", "cuda:1", 1, 16},
              {"vulkan,waiting=4096", "vulkan", 0.1F, 4096},
              {" cpu , waiting=1 , share=0.25 ", "cpu", 0.25F, 1},
              {"cpu,tolerance=1e-3", "cpu", 0.1F, 16, 1e-3F},
              {"auto,share=1e-3,share=0.5", "auto", 0.5F, 16}};
  for (const auto& row : rows) {
    const auto read = read_shadow(row.text);
    ASSERT_TRUE(read) << row.text << ": " << read.error().message;
    EXPECT_EQ(read->device, row.device) << row.text;
    EXPECT_EQ(read->share, row.share) << row.text;
    EXPECT_EQ(read->waiting, row.waiting) << row.text;
    EXPECT_EQ(read->tolerance, row.tolerance) << row.text;
  }
}

TEST(shadow_option, names_what_is_wrong) {
  const std::pair<std::string, const char*> rows[] = {
      {"", "expects the name of a backend or device first"},
      {",share=1", "expects the name of a backend or device first"},
      {"share=1", "expects the name of a backend or device first"},
      {"cpu,share=0", "share of the rows above 0 and at most 1, found '0'"},
      {"cpu,share=1.01", "share of the rows above 0 and at most 1, found '1.01'"},
      {"cpu,share=-0.1", "found '-0.1'"},
      {"cpu,share=nan", "found 'nan'"},
      {"cpu,share=", "found ''"},
      {"cpu,waiting=0", "from 1 to 4096 waiting rows, found '0'"},
      {"cpu,waiting=4097", "from 1 to 4096 waiting rows, found '4097'"},
      {"cpu,tolerance=-1", "a tolerance from 0 to 1000000, found '-1'"},
      {"cpu,tolerance=inf", "found 'inf'"},
      {"cpu,tolerance=x", "found 'x'"},
      {"cpu,waiting=1.5", "found '1.5'"},
      {"cpu,0.5", "share=S, waiting=N or tolerance=T behind its first name, found '0.5'"},
      {"cpu,cuda", "tolerance=T behind its first name, found 'cuda'"},
      {"cpu,", "tolerance=T behind its first name, found ''"},
      {"cpu,Share=1", "found 'Share=1'"},
      {"cpu," + std::string(100'000, 'x'), "xxx...'"}};
  for (const auto& [text, says] : rows) {
    const auto read = read_shadow(text);
    ASSERT_FALSE(read) << text.substr(0, 100);
    EXPECT_EQ(read.error().exit_code, exit_code::usage);
    EXPECT_NE(read.error().message.find(says), std::string::npos) << read.error().message;
    EXPECT_LT(read.error().message.size(), 200U);
  }
}

json report() {
  return json::parse(R"({"state": "running", "device": {"selected": "vulkan:0"},
      "rows": {"seen": 118, "offered": 15, "compared": 12, "dropped": 2, "waiting": 1},
      "same_bytes": 3, "same_top": 11, "kl": {"mean": 1.25e-7, "max": 3.5e-6, "undefined": 0},
      "max_abs": 0.5})");
}

TEST(shadow_line, has_what_was_compared) {
  EXPECT_EQ(
      shadow_line(report()),
      "shadow vulkan:0: 12 of 118 rows compared, 11 with the same top token, 3 byte-equal; KL "
      "mean 1.25e-07, max 3.5e-06; 2 dropped, 1 left");
  json of = report();
  of["rows"]["dropped"] = 3;
  of["first_op"] = {{"op", "attn_paged"}, {"index", 8}, {"of", 93}, {"at", "layer 0"}};
  EXPECT_EQ(
      shadow_line(of),
      "shadow vulkan:0: 12 of 118 rows compared, 11 with the same top token, 3 byte-equal; KL "
      "mean 1.25e-07, max 3.5e-06; 3 dropped; the first op that differs is attn_paged (layer "
      "0), number 9 of 93");
  of["first_op"] = {{"found", false}, {"tokens", 30}};
  EXPECT_NE(shadow_line(of).find("; no op differs over 30 tokens"), std::string::npos);
  of.erase("first_op");
  of["error"] = "the device was lost";
  EXPECT_NE(shadow_line(of).find("; it ended early: the device was lost"), std::string::npos);
}

TEST(shadow_report, knows_what_is_left_and_whether_a_row_differed) {
  json of = report();
  EXPECT_EQ(rows_left(of), 1U);
  EXPECT_TRUE(has_differed(of));
  of["rows"]["dropped"] = 9;
  of["same_bytes"] = 12;
  EXPECT_EQ(rows_left(of), 0U);
  EXPECT_FALSE(has_differed(of));
  for (const char* text : {"null", "[]", "{}", R"({"rows": 3, "same_bytes": -1})"}) {
    const json other = json::parse(text);
    EXPECT_EQ(rows_left(other), 0U) << text;
    EXPECT_FALSE(has_differed(other)) << text;
    EXPECT_NE(shadow_line(other).find("0 of 0 rows compared"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace bitnet::host
