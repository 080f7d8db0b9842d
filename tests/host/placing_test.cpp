#include "library/placing.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace bitnet::host {
namespace {

using nlohmann::json;

TEST(placing, threads_are_printed_as_they_are_kept) {
  struct row {
    const char* report;
    const char* want;
    const char* why;
  };
  for (const auto& [report, want, why] : std::initializer_list<row>{
           {R"({})", "", "a library that reports nothing"},
           {R"({"threads": 3})", "", "what is no object"},
           {R"({"threads": {"count": 2, "cpus": "0-3", "strict": false}})", "2 on CPUs 0-3",
            "no worker is kept"},
           {R"({"threads": {"count": 2, "cpus": "0-3", "strict": true,
                "places": [{"cpus": "0", "node": 0}, {"cpus": "2", "node": 0}]}})",
            "2, kept to CPUs 0, 2 in this order", "strict"},
           {R"({"threads": {"count": 2, "cpus": "0-1", "strict": true,
                "places": [{"cpus": "0", "node": 0}, {"cpus": "0-1", "node": 0}]}})",
            "2, kept to CPUs 0, 0-1 in this order", "the system refused one"},
           {R"({"threads": {"count": 3, "cpus": "0-7", "strict": false,
                "places": [{"cpus": "0-3", "node": 0}, {"cpus": "0-3", "node": 0},
                           {"cpus": "4-7", "node": 1}]}})",
            "3, kept to NUMA nodes: 2 to CPUs 0-3, 1 to CPUs 4-7", "two nodes"}}) {
    EXPECT_EQ(threads_text(json::parse(report)), want) << why;
    EXPECT_EQ(has_places(json::parse(report)), std::string_view(want).contains("kept")) << why;
  }
}

TEST(placing, large_pages_are_counted_where_the_system_does) {
  const std::string text =
      "55ce-7fff ---p 00000000 00:00 0   [rollup]\n"
      "Rss:               40000 kB\n"
      "AnonHugePages:     20480 kB\n"
      "ShmemPmdMapped:        0 kB\n"
      "FilePmdMapped:      4096 kB\n";
  const auto found = read_large_pages(text);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->own, 20480U << 10);
  EXPECT_EQ(found->files, 4096U << 10);
  EXPECT_EQ(text_of(*found), "20 MB of memory, 4 MB of files");
  const auto older = read_large_pages("AnonHugePages:         0 kB\n");
  ASSERT_TRUE(older) << "of a kernel without those of files";
  EXPECT_EQ(older->own, 0U);
  for (const char* bad :
       {"", "Rss: 1 kB\n", "AnonHugePages:", "AnonHugePages: x kB\n", "AnonHugePages: 1 MB\n",
        "AnonHugePages: 99999999999999999999 kB\n", "AnonHugePages: 18446744073709551615 kB\n",
        "NoAnonHugePages: 1 kB\n", "AnonHugePages: 1 kB"})
    EXPECT_FALSE(read_large_pages(bad)) << bad;
}

}  // namespace
}  // namespace bitnet::host
