#include "threads/topology.hpp"

#include <gtest/gtest.h>

#include <string>

#include "../../scratch_folder.hpp"

namespace bitnet::threads {
namespace {

constexpr uint32_t fast = cpu_facts().speed;

TEST(cpu_list, is_read_as_the_kernel_writes_it) {
  struct row {
    std::string text;
    cpu_list want;
    const char* why;
  };
  for (const auto& [text, want, why] : std::initializer_list<row>{
           {"", {}, "a node without CPUs"},
           {"\n", {}, "the same as a line"},
           {"0", {0}, "one"},
           {"0-3,8\n", {0, 1, 2, 3, 8}, "a range and one"},
           {"5-5", {5}, "a range of one"},
           {"0,2,4-5,8191\n", {0, 2, 4, 5, 8191}, "the last number that there is"}}) {
    const auto read = read_cpu_list(text);
    ASSERT_TRUE(read) << why;
    EXPECT_EQ(*read, want) << why;
  }
}

TEST(cpu_list, invalid_lists_are_rejected) {
  for (const char* bad :
       {"x", "-1", "0-", "0-x", "3-1", "1,1", "2,1", "0-3,2", "0,,1", "0,", ",0", "0 1", "0-3:2/4",
        "8192", "0-8192", "4294967296", "99999999999999999999", "0\n\n", "0x3"})
    EXPECT_FALSE(read_cpu_list(bad)) << bad;
}

// A planted /sys.
class topology : public testing::Test {
 protected:
  void cpu_file(uint32_t cpu, const std::string& name, const std::string& text) const {
    folder_.write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + name, text);
  }
  void siblings(uint32_t cpu, const std::string& list) const {
    cpu_file(cpu, "topology/thread_siblings_list", list + "\n");
  }
  void cache(uint32_t cpu, uint32_t index, const char* level, const char* type,
             const std::string& list) const {
    const std::string at = "cache/index" + std::to_string(index) + "/";
    cpu_file(cpu, at + "level", std::string(level) + "\n");
    cpu_file(cpu, at + "type", std::string(type) + "\n");
    cpu_file(cpu, at + "shared_cpu_list", list + "\n");
  }
  void nodes(const std::vector<std::string>& lists) const {
    std::string online;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      online += (i == 0 ? "" : ",") + std::to_string(i);
      folder_.write("sys/devices/system/node/node" + std::to_string(i) + "/cpulist",
                    lists[i] + "\n");
    }
    folder_.write("sys/devices/system/node/online", online + "\n");
  }
  std::vector<cpu_facts> read(const cpu_list& cpus) const {
    return read_topology(folder_.path(), cpus);
  }

  const test::scratch_folder folder_;
};

TEST_F(topology, two_sockets_with_two_threads_to_a_core) {
  // As Linux counts: cores of the first socket, of the second, then their second threads.
  for (uint32_t cpu = 0; cpu < 8; ++cpu) {
    const uint32_t core = cpu % 4;
    const std::string both = std::to_string(core) + "," + std::to_string(core + 4);
    siblings(cpu, both);
    cache(cpu, 0, "1", "Data", both);
    cache(cpu, 1, "1", "Instruction", both);
    cache(cpu, 2, "2", "Unified", both);
    cache(cpu, 3, "3", "Unified", core < 2 ? "0-1,4-5" : "2-3,6-7");
  }
  nodes({"0-1,4-5", "2-3,6-7"});
  EXPECT_TRUE(has_several_nodes(folder_.path()));
  const auto all = read({0, 3, 7});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].core, 0U);
  EXPECT_EQ(all[0].cache, 0U);
  EXPECT_EQ(all[0].node, 0U);
  EXPECT_EQ(all[1].core, 3U);
  EXPECT_EQ(all[1].cache, 2U);
  EXPECT_EQ(all[1].node, 1U);
  EXPECT_EQ(all[2].core, 3U) << "the second thread of that core";
  EXPECT_EQ(all[2].cache, 2U);
  EXPECT_EQ(all[2].speed, fast);
}

TEST_F(topology, small_cores_are_known_by_their_capacity_or_by_intels_list) {
  cpu_file(1, "cpu_capacity", "446\n");
  cpu_file(2, "cpu_capacity", "1024\n");
  folder_.write("sys/devices/cpu_atom/cpus", "3-4\n");
  const auto all = read({1, 2, 3, 5});
  EXPECT_EQ(all[0].speed, 446U);
  EXPECT_EQ(all[1].speed, 1024U);
  EXPECT_LT(all[2].speed, fast);
  EXPECT_EQ(all[3].speed, fast);
}

TEST_F(topology, without_files_each_cpu_is_a_core_and_all_share_a_cache) {
  EXPECT_FALSE(has_several_nodes(folder_.path()));
  const auto all = read({2, 9});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].core, 2U);
  EXPECT_EQ(all[1].core, 9U);
  EXPECT_EQ(all[0].cache, all[1].cache);
  EXPECT_EQ(all[0].node, 0U);
  EXPECT_EQ(all[1].speed, fast);
}

TEST_F(topology, without_a_cache_those_of_a_node_share_one) {
  nodes({"0-1", "2"});
  const auto all = read({0, 1, 2});
  EXPECT_EQ(all[0].cache, all[1].cache);
  EXPECT_NE(all[0].cache, all[2].cache);
}

TEST_F(topology, a_cpu_that_went_away_is_in_no_list) {
  // CPU 1 is offline: its folder has no topology, and its sibling stands alone.
  siblings(0, "0");
  cache(0, 0, "3", "Unified", "0,2");
  siblings(2, "2");
  cache(2, 0, "3", "Unified", "0,2");
  nodes({"0,2"});
  const auto all = read({0, 1, 2});
  EXPECT_EQ(all[0].cache, all[2].cache);
  EXPECT_EQ(all[1].core, 1U);
  EXPECT_NE(all[1].cache, all[0].cache);
}

TEST_F(topology, contradictory_files_are_ignored) {
  struct row {
    const char* list;
    const char* why;
  };
  for (const auto& [list, why] :
       std::initializer_list<row>{{"0", "a core that the CPU is not part of"},
                                  {"0-99999999", "more CPUs than there can be"},
                                  {"3-0", "a range that ends before it begins"},
                                  {"\x01\xff garbage", "no list"},
                                  {"", "nobody"}}) {
    siblings(3, list);
    cache(3, 0, "3", "Unified", list);
    const auto all = read({3, 4});
    EXPECT_EQ(all[0].core, 3U) << why;
    EXPECT_EQ(all[0].cache, all[1].cache) << why;
  }
  cpu_file(3, "cpu_capacity", "-5\n");
  folder_.write("sys/devices/system/node/online", "0-1\n");
  folder_.write("sys/devices/system/node/node1/cpulist", "3-\n");
  EXPECT_EQ(read({3}).front().speed, fast);
  EXPECT_EQ(read({3}).front().node, 0U);
  folder_.write("sys/devices/system/node/online", std::string(1 << 20, '9'));
  EXPECT_FALSE(has_several_nodes(folder_.path()));
  EXPECT_EQ(read({3}).front().node, 0U);
}

}  // namespace
}  // namespace bitnet::threads
