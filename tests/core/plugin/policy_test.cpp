// What an allow-list may say, and what it lets through.

#include "plugin/trust/policy.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "../../fakes/loader_fixture.hpp"
#include "plugin/inspection/inspect.hpp"
#include "plugin/trust/hash.hpp"

namespace bitnet::plugin {
namespace {

using test::folder;

struct row {
  const char* text;
  std::string want;  // "name@id ..." or "bad"
};

std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << "'" << r.text << "'";
}

class allow_list : public testing::TestWithParam<row> {};

TEST_P(allow_list, is_read_strictly) {
  const auto list = parse_allowed(GetParam().text);
  std::string got;
  if (list)
    for (const allowed_backend& one : *list)
      got += (got.empty() ? "" : " ") + one.name + (one.id.empty() ? "" : "@" + one.id);
  EXPECT_EQ(list ? got : "bad", GetParam().want);
  if (!list) {
    EXPECT_EQ(list.error().status, BITNET_INVALID_ARGUMENT);
  }
}

const row rows[] = {
    {"", ""},
    {"  ", ""},
    {"cpu", "cpu"},
    {" cpu , org.example.npu ", "cpu org.example.npu"},
    {"cpu@0011aaff0011aaff", "cpu@0011aaff0011aaff"},
    {"cpu,", "bad"},
    {",cpu", "bad"},
    {"cpu,,cuda", "bad"},
    {"Cpu", "bad"},
    {"c pu", "bad"},
    {"*", "bad"},
    {"cpu@", "bad"},
    {"cpu@00", "bad"},        // too short to mean one file
    {"cpu@0011AAFF", "bad"},  // upper case
    {"cpu@0011aaf", "bad"},   // half a byte
    {"cpu@0011aaff@00", "bad"},
};

INSTANTIATE_TEST_SUITE_P(rows, allow_list, testing::ValuesIn(rows));

TEST(policy, lets_through_what_it_names) {
  policy rules;
  EXPECT_TRUE(check_allowed(rules, "cuda").has_value()) << "no list, no limit";
  rules.allowed = parse_allowed("cpu,org.example.npu").value();
  EXPECT_TRUE(check_allowed(rules, "cpu").has_value());
  const auto rejected = check_allowed(rules, "cuda");
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, code::trust_not_allowed);
  EXPECT_EQ(rejected.error().status, BITNET_UNAVAILABLE);
  EXPECT_NE(rejected.error().reason.find("names only cpu, org.example.npu"), std::string::npos);
}

TEST(policy, knows_files_by_build_id_or_hash) {
  const folder f;
  const auto file = open_trusted(f.fake("good"));
  const auto facts = inspect_file(*file, {});
  ASSERT_TRUE(facts.has_value());
  const std::string bytes = folder::read(folder::built("good"));
  const std::string hash = sha256_of(std::as_bytes(std::span(bytes.data(), bytes.size())));
  const auto check = [&](const std::string& list) {
    policy rules;
    rules.allowed = parse_allowed(list).value();
    return check_file(rules, {.name = facts->note.name, .build_id = facts->build_id}, *file);
  };
  EXPECT_TRUE(check("good").has_value());
  EXPECT_TRUE(check("good@" + facts->build_id).has_value());
  EXPECT_TRUE(check("good@" + hash).has_value());
  EXPECT_TRUE(check("good@0011223344,good@" + hash).has_value()) << "either will do";
  const auto other = check("good@0011223344,good@" + std::string(64, '0'));
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, code::trust_hash);
  EXPECT_EQ(other.error().status, BITNET_REJECTED);
  for (const std::string& text :
       {"build id " + facts->build_id, "SHA-256 " + hash, std::string("wants 0011223344 or 000")})
    EXPECT_NE(other.error().reason.find(text), std::string::npos) << other.error().reason;
}

// Its author may write any build id into a file, also one of 64 digits.
TEST(policy, a_build_id_never_stands_for_a_hash) {
  const folder f;
  const auto file = open_trusted(f.fake("id-like-a-hash"));
  const auto facts = inspect_file(*file, {});
  ASSERT_TRUE(facts.has_value()) << facts.error().reason;
  ASSERT_EQ(facts->build_id.size(), 64U) << "the fake claims what looks like a SHA-256";
  const file_claim claim{.name = facts->note.name, .build_id = facts->build_id};
  policy rules;
  rules.allowed = parse_allowed("id-like-a-hash@" + facts->build_id).value();
  const auto passed = check_file(rules, claim, *file);
  ASSERT_FALSE(passed.has_value());
  EXPECT_EQ(passed.error().code, code::trust_hash);
  const std::string bytes = folder::read(file->path);
  rules.allowed[0].id = sha256_of(std::as_bytes(std::span(bytes.data(), bytes.size())));
  EXPECT_TRUE(check_file(rules, claim, *file).has_value());
}

}  // namespace
}  // namespace bitnet::plugin
