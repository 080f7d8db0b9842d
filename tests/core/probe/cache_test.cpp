// What is remembered, for how long, and what a damaged file is worth. The clock is a parameter.

#include "probe/cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::probe {
namespace {

using plugin::code;
using test::folder;

constexpr int64_t start = 1'000'000;
const cache_key key{"good", "abc123", "/lib/good.so", "as it is"};

outcome answer(std::optional<code> fault = {}) {
  outcome f;
  f.what.version = "1";
  if (fault) f.what.fault = plugin::defect{*fault, BITNET_REJECTED, "crashed with SIGSEGV", ""};
  return f;
}

class remembering : public testing::Test {
 protected:
  void keep(const outcome& f, int64_t at, bool fresh = false, const cache_key& k = key) {
    outcome copy = f;
    memory.remember(k, at, fresh, copy);
  }
  std::optional<outcome> recall(int64_t at, const cache_key& k = key) {
    notes.clear();
    return memory.recall(k, at, notes);
  }
  [[nodiscard]] std::filesystem::path file() const {
    return files.path() / "probe/good-abc123.probe";
  }

  folder files;
  cache memory{files.path() / "probe"};
  std::vector<std::string> notes;
};

TEST_F(remembering, a_good_answer_lasts_as_long_as_the_machine_is_the_same) {
  EXPECT_FALSE(recall(start));
  keep(answer(), start);
  const auto got = recall(start + 1'000'000);
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->cached);
  EXPECT_EQ(got->age_s, 1'000'000);
  EXPECT_EQ(got->what.version, "1");
  cache_key other = key;
  other.fingerprint = "another driver";
  EXPECT_FALSE(recall(start, other));
  other = key;
  other.build_id = "def456";
  EXPECT_FALSE(recall(start, other));
  EXPECT_FALSE(recall(start - 10)) << "the clock was set back";
}

TEST_F(remembering, a_fault_is_kept_a_minute_then_twice_as_long_up_to_an_hour) {
  int64_t now = start;
  for (const int64_t expected : {60, 120, 240, 480, 960, 1920, 3600, 3600}) {
    keep(answer(code::probe_timeout), now);
    const auto soon = recall(now + 1);
    ASSERT_TRUE(soon);
    EXPECT_EQ(soon->retry_in_s, expected - 1);
    EXPECT_FALSE(recall(now + expected));
    now += expected;
  }
  keep(answer(), now);
  keep(answer(code::probe_timeout), now);
  EXPECT_EQ(recall(now)->retry_in_s, 60) << "a good answer in between starts over";
}

TEST_F(remembering, the_second_crash_is_a_quarantine_of_that_build) {
  keep(answer(code::probe_crash), start);
  EXPECT_EQ(recall(start)->what.fault->code, code::probe_crash);
  EXPECT_FALSE(recall(start + 60)) << "after the first it is tried again";
  outcome second = answer(code::probe_crash);
  memory.remember(key, start + 60, false, second);
  EXPECT_EQ(second.what.fault->code, code::probe_quarantine);
  cache_key moved = key;
  moved.library = "/elsewhere/good.so";
  moved.fingerprint = "another driver";
  const auto got = recall(start + 1'000'000, moved);
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->quarantined);
  EXPECT_EQ(got->what.fault->code, code::probe_quarantine);
  EXPECT_EQ(got->what.fault->reason,
            "quarantined: this build crashed 2 times, last it crashed with SIGSEGV");
  moved.build_id = "def456";
  EXPECT_FALSE(recall(start + 1'000'000, moved)) << "another build is another plugin";
  keep(answer(code::probe_crash), start + 70, true);
  EXPECT_FALSE(recall(start + 71)->quarantined) << "a fresh probe counts from the start";
}

TEST_F(remembering, a_repaired_file_is_tried_again_though_it_has_the_build_id) {
  cache_key mine = key;
  mine.library = files.write("lib/good.so", "bytes that crash", 0755);
  keep(answer(code::probe_crash), start, false, mine);
  keep(answer(code::probe_crash), start + 60, false, mine);
  cache_key touched = mine;
  touched.fingerprint = "another time of change";
  EXPECT_TRUE(recall(start + 1000, touched)->quarantined) << "the same bytes";
  files.write("lib/good.so", "bytes that work", 0755);
  EXPECT_FALSE(recall(start + 1000, touched)) << "other bytes of the same build id";
  keep(answer(code::probe_crash), start + 1000, false, touched);
  EXPECT_FALSE(recall(start + 1001, touched)->quarantined) << "its strikes are its own";
  keep(answer(code::probe_crash), start + 1060, false, touched);
  EXPECT_TRUE(recall(start + 1061, touched)->quarantined);
}

TEST_F(remembering, a_good_answer_between_two_crashes_prevents_quarantine) {
  keep(answer(code::probe_crash), start);
  keep(answer(), start + 60);
  keep(answer(code::probe_crash), start + 120);
  EXPECT_FALSE(recall(start + 121)->quarantined);
}

TEST_F(remembering, a_failure_of_the_helper_is_not_cached) {
  keep(answer(code::probe_helper), start);
  EXPECT_FALSE(recall(start));
}

TEST_F(remembering, a_damaged_file_is_as_good_as_none_and_is_reported) {
  keep(answer(), start);
  const std::string whole = folder::read(file());
  for (std::size_t cut : {std::size_t{0}, std::size_t{10}, std::size_t{40}, whole.size() - 1}) {
    std::ofstream(file(), std::ios::binary | std::ios::trunc) << whole.substr(0, cut);
    EXPECT_FALSE(recall(start)) << cut;
    ASSERT_EQ(notes.size(), 1U) << cut;
    EXPECT_NE(notes[0].find("is not used: it is damaged"), std::string::npos) << notes[0];
  }
  std::string changed = whole;
  changed[whole.size() / 2] ^= 1;
  std::ofstream(file(), std::ios::binary | std::ios::trunc) << changed;
  EXPECT_FALSE(recall(start));
  std::ofstream(file(), std::ios::binary | std::ios::trunc) << whole;
  EXPECT_TRUE(recall(start));
}

TEST_F(remembering, a_file_that_others_may_write_is_not_believed) {
  keep(answer(), start);
  ASSERT_EQ(chmod(file().c_str(), 0666), 0);
  EXPECT_FALSE(recall(start));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("writable by everybody"), std::string::npos) << notes[0];
}

TEST_F(remembering, a_folder_that_cannot_be_written_is_no_error) {
  cache nowhere("/proc/no/such/place");
  outcome f = answer();
  nowhere.remember(key, start, false, f);
  EXPECT_FALSE(nowhere.recall(key, start, notes));
  EXPECT_TRUE(notes.empty());
}

TEST_F(remembering, a_forgotten_answer_is_gone) {
  keep(answer(), start);
  memory.forget(key);
  EXPECT_FALSE(recall(start));
}

}  // namespace
}  // namespace bitnet::probe
