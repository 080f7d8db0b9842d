// A mapped file that loses its bytes ends no process; every other fault goes where it went before.
#include "base/guarded_map.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace bitnet {
namespace {

constexpr std::size_t pages = 64;

std::size_t page() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// A file without a name, full of ones.
class ones {
 public:
  ones() {
    std::string name = "/tmp/bitnet-map-XXXXXX";
    fd_ = ::mkstemp(name.data());
    ::unlink(name.c_str());
    const std::string text(pages * page(), '1');
    EXPECT_EQ(::write(fd_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  ~ones() { ::close(fd_); }
  ones(const ones&) = delete;
  ones& operator=(const ones&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::size_t size() const { return pages * page(); }
  void cut(std::size_t size) const { ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(size)), 0); }

 private:
  int fd_;
};

// Bytes that are '1', read one of each page.
std::size_t count(std::span<const std::byte> bytes) {
  std::size_t out = 0;
  const volatile std::byte* at = bytes.data();
  for (std::size_t i = 0; i < bytes.size(); i += page()) out += at[i] == std::byte{'1'} ? 1 : 0;
  return out;
}

TEST(guarded_map, a_whole_file_is_read) {
  const ones file;
  const auto map = guarded_map::open(file.fd(), file.size());
  ASSERT_TRUE(map);
  EXPECT_EQ(count(map->bytes()), pages);
  EXPECT_FALSE(map->is_lost());
  const auto empty = guarded_map::open(file.fd(), 0);
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
  EXPECT_FALSE(empty->is_lost());
  EXPECT_FALSE(guarded_map::open(-1, 5));
}

// Pages of a map that the process holds, as the system counts them.
std::size_t held(const guarded_map& map) {
  std::ifstream file("/proc/self/smaps");
  const auto begin = reinterpret_cast<uintptr_t>(map.bytes().data());
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    if (line.find("-") < line.find(" ")) here = std::stoull(line, nullptr, 16) == begin;
    if (here && line.starts_with("Rss:")) return std::stoull(line.substr(4)) * 1024 / page();
  }
  return 0;
}

TEST(guarded_map, pages_that_are_given_back_are_read_again) {
  const ones file;
  const auto map = guarded_map::open(file.fd(), file.size());
  ASSERT_TRUE(map);
  EXPECT_EQ(count(map->bytes()), pages);
  ASSERT_EQ(held(*map), pages);
  map->give_back({});
  map->give_back(map->bytes().subspan(5, page()));
  EXPECT_EQ(held(*map), pages) << "no whole page lies in these";
  map->give_back(map->bytes().subspan(page() / 2, 10 * page()));
  EXPECT_EQ(held(*map), pages - 9);
  EXPECT_EQ(count(map->bytes()), pages);
  EXPECT_FALSE(map->is_lost());
}

TEST(guarded_map, a_file_that_is_cut_reads_as_zeros) {
  for (const std::size_t left : {std::size_t{0}, std::size_t{1}, pages / 2, pages - 1}) {
    const ones file;
    const auto map = guarded_map::open(file.fd(), file.size());
    ASSERT_TRUE(map);
    file.cut(left * page());
    EXPECT_FALSE(map->is_lost()) << "they were not read yet";
    EXPECT_EQ(count(map->bytes()), left);
    EXPECT_TRUE(map->is_lost());
  }
}

TEST(guarded_map, one_loss_is_not_anothers) {
  const ones lost, whole;
  const auto a = guarded_map::open(lost.fd(), lost.size());
  const auto b = guarded_map::open(whole.fd(), whole.size());
  lost.cut(0);
  EXPECT_EQ(count(a->bytes()), 0U);
  EXPECT_EQ(count(b->bytes()), pages);
  EXPECT_TRUE(a->is_lost());
  EXPECT_FALSE(b->is_lost());
}

TEST(guarded_map, many_threads_lose_it_at_once) {
  const ones file;
  const auto map = guarded_map::open(file.fd(), file.size());
  file.cut(0);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] { EXPECT_EQ(count(map->bytes()), 0U); });
  threads.clear();
  EXPECT_TRUE(map->is_lost());
}

TEST(guarded_map, rows_are_used_again) {
  for (int i = 0; i < 1000; ++i) {
    const ones file;
    const auto map = guarded_map::open(file.fd(), page());
    ASSERT_TRUE(map);
    EXPECT_FALSE(map->is_lost()) << i;
    if (i % 2 == 0) {
      file.cut(0);
      EXPECT_EQ(count(map->bytes()), 0U);
    }
  }
}

// A map that is none of ours, whose bytes are missing.
void fault_elsewhere() {
  const ones file;
  auto* const at = static_cast<const volatile char*>(
      ::mmap(nullptr, file.size(), PROT_READ, MAP_PRIVATE, file.fd(), 0));
  file.cut(0);
  [[maybe_unused]] const char read = at[0];
}

void install_ours() {
  const ones file;
  EXPECT_TRUE(guarded_map::open(file.fd(), file.size()));
}

TEST(guarded_map_death, a_fault_elsewhere_ends_the_process_as_before) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        (void)std::signal(SIGBUS, SIG_DFL);
        install_ours();
        fault_elsewhere();
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST(guarded_map_death, a_signal_that_was_sent_ends_it_too) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        (void)std::signal(SIGBUS, SIG_DFL);
        install_ours();
        (void)std::raise(SIGBUS);
        std::_Exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST(guarded_map_death, other_faults_reach_the_earlier_handler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        (void)std::signal(SIGBUS, [](int) { std::_Exit(42); });
        install_ours();
        fault_elsewhere();
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace bitnet
