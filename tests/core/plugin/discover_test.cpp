// Which manifests count when several directories name the same backend.

#include "plugin/manifest/discover.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::plugin {
namespace {

using test::folder;
using test::manifest_text;

// Directories a, b, c in ascending precedence, as /usr/share, /etc and a user's are.
class places {
 public:
  explicit places(std::vector<const char*> names) {
    for (const char* name : names) {
      directories.push_back(files.path() / name);
      std::filesystem::create_directories(directories.back());
    }
  }
  void put(const std::string& file, const std::string& name, const std::string& version) {
    files.write(file, manifest_text(name, "/nowhere/lib.so", {{"version", version}}));
  }
  [[nodiscard]] discovery look() const { return discover(directories); }

  folder files;
  std::vector<std::filesystem::path> directories;
};

TEST(discover, a_later_directory_masks_the_same_file_of_an_earlier_one) {
  // Each pair of neighbours and the outer pair: precedence is by place in the list only.
  for (const auto& [low, high] : {std::pair{"a", "b"}, {"b", "c"}, {"a", "c"}}) {
    places p({"a", "b", "c"});
    p.put(std::string(low) + "/50-x.yaml", "x", "low");
    p.put(std::string(high) + "/50-x.yaml", "x", "high");
    const auto found = p.look().found;
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].manifest->version, "high") << low << " against " << high;
    EXPECT_EQ(found[0].file, p.files.path() / high / "50-x.yaml");
  }
}

TEST(discover, an_empty_file_disables_the_backend) {
  places p({"a", "b"});
  p.put("a/50-x.yaml", "x", "1");
  p.files.write("b/50-x.yaml", "");
  const auto found = p.look().found;
  ASSERT_EQ(found.size(), 1U);
  ASSERT_FALSE(found[0].manifest.has_value());
  EXPECT_EQ(found[0].name, "x");
  EXPECT_EQ(found[0].manifest.error().code, code::manifest_disabled);
  EXPECT_EQ(found[0].manifest.error().status, BITNET_UNAVAILABLE);
  EXPECT_NE(found[0].manifest.error().reason.find("b/50-x.yaml is empty"), std::string::npos);
}

TEST(discover, a_link_to_dev_null_disables_the_backend) {
  places p({"a", "b"});
  p.put("a/50-x.yaml", "x", "1");
  std::filesystem::create_symlink("/dev/null", p.directories[1] / "50-x.yaml");
  const auto found = p.look().found;
  ASSERT_EQ(found.size(), 1U);
  ASSERT_FALSE(found[0].manifest.has_value());
  EXPECT_EQ(found[0].manifest.error().code, code::manifest_disabled);
}

TEST(discover, a_later_file_enables_it_again) {
  places p({"a", "b", "c"});
  p.put("a/50-x.yaml", "x", "1");
  p.files.write("b/50-x.yaml", "");
  p.put("c/50-x.yaml", "x", "3");
  const auto found = p.look().found;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].manifest->version, "3");
}

TEST(discover, of_two_files_for_one_backend_the_later_counts) {
  places same({"a"});
  same.put("a/40-x.yaml", "x", "forty");
  same.put("a/50-x.yaml", "x", "fifty");
  auto found = same.look().found;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].manifest.error().code, code::manifest_duplicate);
  EXPECT_NE(found[0].manifest.error().reason.find("50-x.yaml"), std::string::npos);
  EXPECT_EQ(found[1].manifest->version, "fifty");

  // The place weighs more than the number.
  places other({"a", "b"});
  other.put("a/50-x.yaml", "x", "vendor");
  other.put("b/40-x.yaml", "x", "admin");
  found = other.look().found;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].manifest->version, "admin");
  EXPECT_EQ(found[1].manifest.error().code, code::manifest_duplicate);
}

TEST(discover, says_what_became_of_each_directory) {
  places p({"a", "b"});
  p.put("a/50-x.yaml", "x", "1");
  p.put("b/50-x.yaml", "x", "1");
  p.put("b/60-y.yaml", "y", "1");
  p.files.write("b/README", "not a manifest");
  p.directories.push_back(p.files.path() / "absent");
  p.directories.push_back(p.files.write("file", "x"));
  p.directories.push_back(p.files.path() / "open");
  std::filesystem::create_directories(p.directories.back());
  ASSERT_EQ(chmod(p.directories.back().c_str(), 0777), 0);
  p.put("open/70-z.yaml", "z", "1");
  const auto d = p.look();
  ASSERT_EQ(d.searched.size(), 5U);
  EXPECT_EQ(d.searched[0].result, "1 manifest");
  EXPECT_EQ(d.searched[1].result, "2 manifests");
  EXPECT_EQ(d.searched[2].result, "absent");
  EXPECT_EQ(d.searched[3].result, "cannot be read: Not a directory");
  EXPECT_TRUE(d.searched[4].result.starts_with("cannot be trusted: ")) << d.searched[4].result;
  EXPECT_NE(d.searched[4].result.find("chmod go-w"), std::string::npos);
  EXPECT_EQ(d.found.size(), 2U) << "nothing is read from a directory that any user can write";
}

// One bad manifest each; a good one beside it is found all the same.
struct row {
  const char* why;
  const char* file;
  std::string text;
  mode_t mode;
  const char* code;
  std::vector<const char*> mentions;
};

std::ostream& operator<<(std::ostream& out, const row& r) {
  return out << r.why;
}

class bad_manifest : public testing::TestWithParam<row> {};

TEST_P(bad_manifest, is_reported_and_stops_no_other) {
  const row& r = GetParam();
  SCOPED_TRACE(r.why);
  places p({"a"});
  p.put("a/90-fine.yaml", "fine", "1");
  p.files.write(std::string("a/") + r.file, r.text, r.mode);
  const auto found = p.look().found;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(found[1].manifest.has_value());
  ASSERT_FALSE(found[0].manifest.has_value());
  EXPECT_EQ(code_text(found[0].manifest.error().code), r.code) << found[0].manifest.error().reason;
  for (const char* text : r.mentions)
    EXPECT_NE(
        (found[0].manifest.error().reason + "; " + found[0].manifest.error().advice()).find(text),
        std::string::npos)
        << "'" << text << "' is not in: " << found[0].manifest.error().reason;
}

const row rows[] = {
    {"10 MB",
     "50-x.yaml",
     "schema: 1\n# " + std::string(10'000'000, 'x'),
     0644,
     "BN-M-SIZE",
     {"10000012 bytes", "at most 65536"}},
    {"one byte too many", "50-x.yaml", std::string(65537, '#'), 0644, "BN-M-SIZE", {"65537 bytes"}},
    {"anchors",
     "50-x.yaml",
     "schema: 1\nname: &x x\n",
     0644,
     "BN-M-SYNTAX",
     {"50-x.yaml:2:", "anchors"}},
    {"world-writable",
     "50-x.yaml",
     manifest_text("x", "/l.so"),
     0666,
     "BN-T-MODE",
     {"50-x.yaml (mode 0666", "writable by everybody", "chmod go-w '"}},
    {"group-writable",
     "50-x.yaml",
     manifest_text("x", "/l.so"),
     0664,
     "BN-T-MODE",
     {"writable by its group"}},
    {"another name inside",
     "50-x.yaml",
     manifest_text("y", "/l.so"),
     0644,
     "BN-M-NAME",
     {"describes 'y', but its file name says 'x'"}},
    {"a file name that is no manifest's",
     "50.yaml",
     manifest_text("x", "/l.so"),
     0644,
     "BN-M-NAME",
     {"like 50-cpu.yaml", "'50.yaml'"}},
};

INSTANTIATE_TEST_SUITE_P(rows, bad_manifest, testing::ValuesIn(rows));

TEST(discover, a_directory_named_like_a_manifest_is_rejected) {
  places p({"a"});
  std::filesystem::create_directories(p.directories[0] / "50-x.yaml");
  const auto found = p.look().found;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(code_text(found[0].manifest.error().code), "BN-T-KIND");
}

TEST(discover, a_dangling_link_is_reported) {
  places p({"a"});
  std::filesystem::create_symlink("/nowhere/x.yaml", p.directories[0] / "50-x.yaml");
  const auto found = p.look().found;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(code_text(found[0].manifest.error().code), "BN-T-MISSING");
}

}  // namespace
}  // namespace bitnet::plugin
