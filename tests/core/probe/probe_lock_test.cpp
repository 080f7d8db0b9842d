// Which process holds a probe lock, and since when.

#include "probe/probe_lock.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::probe {
namespace {

const auto at_once = [] { return true; };

TEST(probe_lock, one_holds_it) {
  const test::folder files;
  const auto file = files.path() / "a.lock";
  {
    const auto mine = probe_lock::take(file, at_once);
    ASSERT_TRUE(mine);
    EXPECT_FALSE(probe_lock::take(file, at_once)) << "another holds it";
    int looks = 0;
    EXPECT_FALSE(probe_lock::take(file, [&] { return ++looks == 3; }));
    EXPECT_EQ(looks, 3);
  }
  EXPECT_TRUE(probe_lock::take(file, at_once));
  EXPECT_FALSE(probe_lock::take(files.path() / "no/folder", at_once));
  std::filesystem::create_symlink(file, files.path() / "link");
  EXPECT_FALSE(probe_lock::take(files.path() / "link", at_once)) << "a link could lead anywhere";
  std::string problem;
  ASSERT_EQ(mkfifo((files.path() / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(probe_lock::take(files.path() / "pipe", at_once, &problem));
  EXPECT_NE(problem.find("it is no regular file; remove it"), std::string::npos) << problem;
}

TEST(probe_lock, report_for_how_long_a_probe_is_under_way) {
  const test::folder files;
  const auto file = files.path() / "a.lock";
  EXPECT_EQ(under_way_ms(file), 0U);
  const auto mine = probe_lock::take(file, at_once);
  ASSERT_TRUE(mine);
  EXPECT_EQ(under_way_ms(file), 0U) << "not begun";
  mine->mark(true);
  const auto minute_ago = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1);
  std::filesystem::last_write_time(file, minute_ago);
  EXPECT_GE(under_way_ms(file), 60'000U);
  EXPECT_LT(under_way_ms(file), 3'600'000U);
  std::filesystem::last_write_time(file, minute_ago + std::chrono::hours(1));
  EXPECT_EQ(under_way_ms(file), 0U) << "a clock that was set back";
  mine->mark(false);
  std::filesystem::last_write_time(file, minute_ago);
  EXPECT_EQ(under_way_ms(file), 0U) << "ended";
}

}  // namespace
}  // namespace bitnet::probe
