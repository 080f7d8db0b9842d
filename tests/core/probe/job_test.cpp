// What a program asks a broker, and the answer: both come out as they went in.

#include "probe/job.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace bitnet::probe {
namespace {

TEST(job, is_read_as_it_was_written) {
  job j;
  j.work.name = "good";
  j.work.library = "/lib/good.so";
  j.work.params = {{"isa", "other"}};
  j.work.late_nodes = {{"driver", "/dev/late"}};
  j.work.pipes = {"/tmp/service", "/run/other"};
  j.limits = deadlines_for(1234);
  j.environment = {"HOME=/root", "LANG=C"};
  j.helper = "/lib/helper";
  j.scratch = "/tmp";
  j.memory = "/cache";
  j.key = {"good", "abc", "/lib/good.so", "print"};
  j.fresh = j.needed = true;
  const auto got = read_job(write_job(j));
  ASSERT_TRUE(got) << got.error().reason;
  EXPECT_EQ(write_job(*got), write_job(j));
  EXPECT_EQ(got->limits[2].hard_ms, 1234U);
  EXPECT_EQ(got->key.fingerprint, "print");
  EXPECT_TRUE(got->needed && got->fresh);
  for (const char* text : {"", "[]", "{}", R"({"work": 1})", "\xff"}) EXPECT_FALSE(read_job(text));
}

TEST(job, a_manifest_gives_every_stage_less_time_or_more) {
  const auto hard = [](uint32_t most_ms) {
    std::vector<uint32_t> out;
    for (const deadline& d : deadlines_for(most_ms)) out.push_back(d.hard_ms);
    return out;
  };
  EXPECT_EQ(hard(60'000), (std::vector<uint32_t>{30'000, 5'000, 60'000, 60'000, 10'000}));
  EXPECT_EQ(hard(1'000), (std::vector<uint32_t>{30'000, 1'000, 1'000, 1'000, 1'000}));
  EXPECT_EQ(hard(600'000), (std::vector<uint32_t>{30'000, 50'000, 600'000, 600'000, 50'000}));
  EXPECT_EQ(deadlines_for(500)[1].soft_ms, 500U);
}

// A number that is cut on its way into its type would be a limit that was never set.
TEST(job, numbers_that_do_not_fit_are_rejected) {
  job j;
  const std::string good = write_job(j);
  const auto with = [&](const std::string& number) {
    std::string text = good;
    return text.replace(text.find("[0,0]"), 5, "[" + number + ",0]");
  };
  EXPECT_TRUE(read_job(with("4294967295")));
  for (const char* number : {"1e300", "-1", "4294967296", "1.5", "\"1\"", "null"}) {
    const auto got = read_job(with(number));
    ASSERT_FALSE(got) << number;
    EXPECT_NE(got.error().reason.find("whole number"), std::string::npos) << got.error().reason;
  }
  EXPECT_FALSE(read_answer(
      R"({"outcome":"{}","cached":true,"quarantined":true,"age_s":1e300,"retry_in_s":0})"));
}

TEST(job, the_answer_keeps_what_it_has_of_the_cache) {
  outcome f;
  f.reached = stage::close;
  f.cached = f.quarantined = true;
  f.age_s = 5;
  f.retry_in_s = 7;
  const auto got = read_answer(write_answer(f));
  ASSERT_TRUE(got) << got.error().reason;
  EXPECT_EQ(got->reached, stage::close);
  EXPECT_TRUE(got->cached && got->quarantined);
  EXPECT_EQ(got->age_s, 5);
  EXPECT_EQ(got->retry_in_s, 7);
  for (const char* text : {"", "[]", "{}", R"({"outcome": "{}"})"}) EXPECT_FALSE(read_answer(text));
}

}  // namespace
}  // namespace bitnet::probe
