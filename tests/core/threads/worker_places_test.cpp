// Machines that are only described: where their workers go, and which rows lie near them.
#include "threads/worker_places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bitnet/sdk/nodes.hpp"

namespace bitnet::threads {
namespace {

// Of each worker.
cpu_list cpus_of(const std::vector<cpu_facts>& machine, uint32_t n) {
  cpu_list out;
  for (const worker_place& one : places_on(machine, n, true)) {
    EXPECT_EQ(one.cpus.size(), 1U);
    out.push_back(one.cpus.front());
  }
  return out;
}

// Cores of nodes, of `caches` a node, each with `turns` hardware threads, numbered as Linux does.
std::vector<cpu_facts> machine_of(uint32_t nodes, uint32_t caches, uint32_t cores, uint32_t turns) {
  std::vector<cpu_facts> out;
  const uint32_t all = nodes * caches * cores;
  for (uint32_t turn = 0; turn < turns; ++turn)
    for (uint32_t core = 0; core < all; ++core)
      out.push_back({.cpu = turn * all + core,
                     .core = core,
                     .cache = core / cores,
                     .node = core / cores / caches});
  return out;
}

struct row {
  std::vector<cpu_facts> machine;
  uint32_t n;
  cpu_list want;
  const char* why;
};

TEST(worker_places, gives_each_worker_a_cpu) {
  const auto one_socket = machine_of(1, 1, 4, 2), two_sockets = machine_of(2, 1, 4, 2),
             four_caches = machine_of(2, 2, 2, 1);
  const std::vector<cpu_facts> hybrid = {{.cpu = 0, .core = 0},
                                         {.cpu = 1, .core = 0},
                                         {.cpu = 2, .core = 2},
                                         {.cpu = 3, .core = 2},
                                         {.cpu = 4, .core = 4, .speed = 512},
                                         {.cpu = 5, .core = 5, .speed = 512}};
  for (const auto& [machine, n, want, why] : std::initializer_list<row>{
           {one_socket, 1, {0}, "one"},
           {one_socket, 4, {0, 1, 2, 3}, "a core each"},
           {one_socket, 6, {0, 4, 1, 5, 2, 3}, "second threads once all cores have one"},
           {one_socket, 8, {0, 4, 1, 5, 2, 6, 3, 7}, "those of a core side by side"},
           {one_socket, 10, {0, 0, 4, 1, 1, 5, 2, 6, 3, 7}, "more than there are CPUs"},
           {two_sockets, 2, {0, 4}, "a socket each: both memories are of use"},
           {two_sockets, 4, {0, 1, 4, 5}, "two of each, neighbours on one socket"},
           {two_sockets, 5, {0, 1, 2, 4, 5}, "the odd one goes to the first"},
           {two_sockets, 8, {0, 1, 2, 3, 4, 5, 6, 7}, "all cores, no second thread"},
           {four_caches, 4, {0, 2, 4, 6}, "a cache each"},
           {four_caches, 6, {0, 1, 2, 4, 5, 6}, "nodes have three each"},
           {hybrid, 2, {0, 2}, "large cores first"},
           {hybrid, 3, {0, 2, 4}, "then a small one"},
           {hybrid, 5, {0, 1, 2, 4, 5}, "and second threads last"}})
    EXPECT_EQ(cpus_of(machine, n), want) << why << ", " << n << " workers";
}

TEST(worker_places, keeps_to_the_cpus_that_are_allowed) {
  // Of the second socket's four cores two, by one thread each: a cgroup's cpuset.
  std::vector<cpu_facts> some;
  for (const cpu_facts& one : machine_of(2, 1, 4, 2))
    if (one.cpu == 5 || one.cpu == 14) some.push_back(one);
  EXPECT_EQ(cpus_of(some, 2), (cpu_list{5, 14}));
  EXPECT_EQ(cpus_of(some, 4), (cpu_list{5, 5, 14, 14}));
  EXPECT_TRUE(places_on({}, 2, true).empty()) << "nothing is known";
}

TEST(worker_places, uses_every_cpu_once_before_any_twice) {
  for (const uint32_t nodes : {1U, 2U, 8U})
    for (const uint32_t turns : {1U, 2U, 4U}) {
      const auto machine = machine_of(nodes, 2, 3, turns);
      const auto all = static_cast<uint32_t>(machine.size());
      for (uint32_t n = 1; n <= 2 * all; ++n) {
        const cpu_list cpus = cpus_of(machine, n);
        ASSERT_EQ(cpus.size(), n);
        const std::set<uint32_t> distinct(cpus.begin(), cpus.end());
        EXPECT_EQ(distinct.size(), std::min(n, all)) << nodes << " nodes, " << n << " workers";
      }
    }
}

TEST(worker_places, without_strictness_workers_move_within_their_node) {
  const auto places = places_on(machine_of(2, 1, 2, 2), 4, false);
  ASSERT_EQ(places.size(), 4U);
  EXPECT_EQ(places[0].cpus, (cpu_list{0, 1, 4, 5}));
  EXPECT_EQ(places[1].cpus, places[0].cpus);
  EXPECT_EQ(places[3].cpus, (cpu_list{2, 3, 6, 7}));
  EXPECT_EQ(places[3].node, 1U);
}

// The whole way: CPUs, workers, rows, pages.
TEST(worker_places, rows_lie_on_the_node_whose_workers_read_them) {
  constexpr uint64_t page = 4096, rows = 6912, row_bytes = 640, address = 7 * page + 64;
  std::vector<uint32_t> nodes;
  for (const worker_place& one : places_on(machine_of(2, 1, 4, 2), 8, true))
    nodes.push_back(one.node);
  ASSERT_EQ(nodes, (std::vector<uint32_t>{0, 0, 0, 0, 1, 1, 1, 1}));
  const auto parts = sdk::parts_of(address, rows * row_bytes, rows, 16, nodes, page);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].node, 0U);
  EXPECT_EQ(parts[1].node, 1U);
  EXPECT_EQ(parts[0].first, 8 * page) << "the page that it shares with others is left alone";
  EXPECT_EQ(parts[0].last, parts[1].first);
  EXPECT_LE(parts[1].last, address + rows * row_bytes);
  EXPECT_GT(parts[1].last + page, address + rows * row_bytes);
  const uint64_t middle = address + rows / 2 * row_bytes;
  EXPECT_LE(std::max(parts[0].last, middle) - std::min(parts[0].last, middle), page / 2);
}

TEST(parts, cover_whole_pages_once_in_order) {
  for (const uint64_t page : {uint64_t{4096}, uint64_t{65536}})
    for (const uint64_t bytes : {0UL, 1UL, 4096UL, 100'000UL, 5'000'000UL})
      for (const uint64_t rows : {0UL, 1UL, 15UL, 17UL, 2560UL, 128'256UL})
        for (const std::vector<uint32_t>& nodes : std::vector<std::vector<uint32_t>>{
                 {}, {3}, {0, 1}, {0, 0, 1}, {0, 0, 1, 1, 2, 2, 3}, {1, 0, 1}}) {
          const uint64_t address = 10 * page + 64;
          const auto parts = sdk::parts_of(address, bytes, rows, 16, nodes, page);
          uint64_t at = 11 * page;
          for (const sdk::node_part& p : parts) {
            EXPECT_EQ(p.first, at);
            EXPECT_LT(p.first, p.last);
            EXPECT_EQ(p.last % page, 0U);
            at = p.last;
          }
          if (!parts.empty()) {
            EXPECT_EQ(at, (address + bytes) / page * page);
          }
          const bool whole = bytes >= 2 * page && rows != 0 && !nodes.empty();
          EXPECT_EQ(parts.empty(), !whole) << bytes << " bytes, " << rows << " rows";
        }
}

// Every worker's rows, to a page, are on its node, however many there are.
TEST(parts, follow_the_ranges_of_workers) {
  constexpr uint64_t page = 4096, row_bytes = 1024, rows = 4000;
  for (const std::vector<uint32_t>& nodes : std::vector<std::vector<uint32_t>>{
           {0, 1}, {0, 0, 1}, {0, 1, 1, 1, 1}, {0, 0, 1, 1, 2, 2, 3, 3}}) {
    const auto parts = sdk::parts_of(page, rows * row_bytes, rows, 16, nodes, page);
    for (uint64_t w = 0; w < nodes.size(); ++w) {
      const uint64_t first = rows / 16 * w / nodes.size() * 16,
                     last = rows / 16 * (w + 1) / nodes.size() * 16;
      for (const uint64_t row : {first + 4, last - 5}) {  // a page inwards
        const uint64_t at = page + row * row_bytes;
        const auto part = std::ranges::find_if(
            parts, [&](const sdk::node_part& p) { return p.first <= at && at < p.last; });
        ASSERT_NE(part, parts.end());
        EXPECT_EQ(part->node, nodes[w]) << "worker " << w << " of " << nodes.size();
      }
    }
  }
}

TEST(worker_places, of_this_machine_is_a_wish_that_it_can_grant) {
  const cpu_list usable = allowed_cpus();
  const auto places = places_here(usable, 3, true);
  ASSERT_EQ(places.size(), 3U);
  for (const worker_place& one : places) {
    ASSERT_EQ(one.cpus.size(), 1U);
    EXPECT_TRUE(std::ranges::binary_search(usable, one.cpus.front()));
  }
  if (!has_several_nodes("/")) {
    EXPECT_TRUE(places_here(usable, 3, false).empty()) << "no worker is kept anywhere";
  }
}

}  // namespace
}  // namespace bitnet::threads
