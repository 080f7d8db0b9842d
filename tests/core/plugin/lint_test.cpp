// The report to an author on a file and its manifest.

#include "plugin/inspection/lint.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <ostream>
#include <string>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::plugin {
namespace {

using test::folder;
using test::manifest_text;

struct row {
  const char* why;
  std::map<std::string, std::string> changes;  // of the manifest
  finding::level_type level;
  const char* check;
  const char* code;
};

std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.why;
}

class lint_manifest : public testing::TestWithParam<row> {};

const finding* find(const findings& all, const std::string& check, finding::level_type level) {
  for (const finding& one : all.all())
    if (one.check == check && one.level == level) return &one;
  return nullptr;
}

TEST_P(lint_manifest, is_compared_with_the_file) {
  const row& r = GetParam();
  const folder f;
  const auto file = f.fake("hardened");
  const auto manifest = f.write("m.yaml", manifest_text("hardened", file, r.changes));
  const auto result = lint(file, manifest);
  ASSERT_TRUE(result.has_value()) << result.error().reason;
  EXPECT_EQ(result->facts.note.name, "hardened");
  EXPECT_EQ(result->size_bytes, std::filesystem::file_size(file));
  const finding* found = find(result->found, r.check, r.level);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(code_text(found->what.code), r.code) << found->what.reason;
  EXPECT_EQ(result->found.first_error() != nullptr, r.level == finding::level_type::error);
}

constexpr auto ok = finding::level_type::ok;
constexpr auto warning = finding::level_type::warning;
constexpr auto error = finding::level_type::error;

const row rows[] = {
    {"it says the same", {}, ok, "trust", "BN-OK"},
    {"another name", {{"name", "other"}}, error, "manifest", "BN-I-NAME"},
    {"another vendor", {{"vendor", "org.other"}}, error, "manifest", "BN-M-FIELD"},
    {"another licence", {{"license", "MIT"}}, error, "manifest", "BN-M-FIELD"},
    {"a minor that it does not speak",
     {{"abi", "{major: 0, min: 0, max: 4711}"}},
     error,
     "manifest",
     "BN-M-FIELD"},
    {"another version", {{"version", "9"}}, warning, "manifest", "BN-I-NAME"},
    {"another ABI major", {{"abi", "{major: 7, min: 0, max: 0}"}}, error, "manifest", "BN-I-NAME"},
    {"an unknown key", {{"colour", "blue"}}, warning, "manifest", "BN-M-FIELD"},
    {"a missing field", {{"vendor", ""}}, error, "manifest", "BN-M-FIELD"},
    {"another file's hash", {{"sha256", std::string(64, 'a')}}, error, "hash", "BN-T-HASH"},
    {"a hash that is none", {{"sha256", "abc"}}, error, "manifest", "BN-M-FIELD"},
};

INSTANTIATE_TEST_SUITE_P(rows, lint_manifest, testing::ValuesIn(rows));

// Lines and columns, from 1, of the value.
TEST(lint, names_the_place_of_what_differs) {
  const folder f;
  const auto file = f.fake("says-class");
  struct place {
    std::map<std::string, std::string> changes;
    const char* text;
  };
  for (const place& p : {
           place{{{"vendor", "org.other"}},
                 "m.yaml:4:9: 'vendor' is 'org.other', but the plugin's note says 'org.example'"},
           {{{"license", "MIT"}}, "m.yaml:5:10: 'license' is 'MIT'"},
           {{{"abi", "{major: 0, min: 1, max: 4711}"}}, "m.yaml:7:30: 'abi.max' is '4711'"},
           {{{"class", "npu"}}, "m.yaml:8:8: 'class' is 'npu', but the plugin's note says 'gpu'"},
       }) {
    SCOPED_TRACE(p.text);
    auto changes = p.changes;
    changes.try_emplace("class", "gpu");
    const auto manifest = f.write("m.yaml", manifest_text("says-class", file, changes));
    const auto result = lint(file, manifest);
    ASSERT_TRUE(result.has_value()) << result.error().reason;
    const defect* bad = result->found.first_error();
    ASSERT_NE(bad, nullptr);
    EXPECT_EQ(code_text(bad->code), "BN-M-FIELD");
    EXPECT_NE(bad->reason.find(p.text), std::string::npos) << bad->reason;
  }
  const auto manifest = f.write("m.yaml", manifest_text("says-class", file, {{"class", "gpu"}}));
  EXPECT_EQ(lint(file, manifest)->found.first_error(), nullptr);
}

// The linker would find it in the child that probes; an author hears of it when the file is made.
TEST(lint, of_symbols_that_nothing_defines) {
  const folder f;
  const auto result = lint(f.fake("undefined"), "");
  ASSERT_TRUE(result.has_value());
  const finding* found = find(result->found, "symbols", error);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(code_text(found->what.code), "BN-A-LOAD");
  EXPECT_NE(found->what.reason.find("bitnet_fake_nowhere"), std::string::npos);
  EXPECT_EQ(found->what.reason.find("may_be_nowhere"), std::string::npos) << "a weak one may";
}

TEST(lint, needs_no_manifest) {
  const folder f;
  const auto result = lint(f.fake("hardened"), "");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->found.first_error(), nullptr);
  for (const finding& one : result->found.all()) EXPECT_EQ(one.level, ok) << one.what.reason;
}

TEST(lint, of_a_file_that_is_yet_to_be_installed) {
  const folder f;
  const auto file = f.fake("hardened");
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  const auto result = lint(file, "");
  ASSERT_TRUE(result.has_value());
  ASSERT_NE(find(result->found, "trust", warning), nullptr);
  EXPECT_EQ(find(result->found, "trust", warning)->what.code, code::trust_mode);
  EXPECT_EQ(result->found.first_error(), nullptr);
}

TEST(lint, of_what_cannot_be_read) {
  const folder f;
  EXPECT_EQ(lint("/nowhere/x.so", "").error().code, code::trust_missing);
  EXPECT_EQ(lint(f.path(), "").error().code, code::trust_kind);
  const auto without_manifest = lint(f.fake("hardened"), "/nowhere/x.yaml");
  ASSERT_TRUE(without_manifest.has_value());
  EXPECT_EQ(without_manifest->found.first_error()->code, code::trust_missing);
  const auto text =
      lint(f.write("text.so", "hello"), f.write("m.yaml", manifest_text("x", "x.so")));
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(text->found.first_error()->code, code::inspect_not_elf);
  EXPECT_EQ(find(text->found, "manifest", error), nullptr) << "there is no note to compare with";
}

}  // namespace
}  // namespace bitnet::plugin
