#include "memory_ceiling.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

namespace bitnet::host {
namespace {

constexpr std::size_t line_words = 8;  // a cache line
constexpr std::size_t ahead = 64;      // lines: 4 KiB, as far as the kernels look

uint64_t sum(const uint64_t* begin, const uint64_t* end) {
  std::array<uint64_t, line_words> sums{};
  for (const uint64_t* line = begin; line + line_words <= end; line += line_words) {
    __builtin_prefetch(line + ahead * line_words, 0, 2);
    for (std::size_t i = 0; i < line_words; ++i) sums[i] += line[i];
  }
  uint64_t total = 0;
  for (const uint64_t s : sums) total += s;
  return total;
}

}  // namespace

memory_ceiling::memory_ceiling(uint64_t bytes) : words_(bytes / sizeof(uint64_t), 1) {}

double memory_ceiling::measure(uint32_t threads) const {
  using clock = std::chrono::steady_clock;
  std::array<double, 5> passes{};
  std::barrier turn(static_cast<std::ptrdiff_t>(threads));
  std::atomic<uint64_t> kept{0};  // so that the reading is not left out
  // The caller reads too: one that only held the clock would wait for a core and start it late.
  const auto read = [&](uint32_t t) {
    const std::size_t begin = words_.size() * t / threads, end = words_.size() * (t + 1) / threads;
    for (double& pass : passes) {
      turn.arrive_and_wait();
      const auto start = clock::now();
      kept += sum(words_.data() + begin, words_.data() + end);
      turn.arrive_and_wait();
      if (t == 0) pass = std::chrono::duration<double>(clock::now() - start).count();
    }
  };
  std::vector<std::jthread> readers;
  readers.reserve(threads);
  for (uint32_t t = 1; t < threads; ++t) readers.emplace_back(read, t);
  read(0);
  std::ranges::nth_element(passes, passes.begin() + passes.size() / 2);
  return static_cast<double>(bytes()) / passes[passes.size() / 2] / 1e9;
}

}  // namespace bitnet::host
