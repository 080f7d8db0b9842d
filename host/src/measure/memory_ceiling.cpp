#include "measure/memory_ceiling.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

namespace bitnet::host {
namespace {

constexpr std::size_t line_words = 8;        // a cache line
constexpr std::size_t ahead = 128;           // prefetch distance in lines: 8 KiB
constexpr std::size_t large_page = 2 << 20;  // bytes

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

memory_ceiling::memory_ceiling(uint64_t bytes)
    : n_words_(bytes / sizeof(uint64_t)), words_(nullptr, std::free) {
  const std::size_t room = (bytes + large_page - 1) / large_page * large_page;
  void* memory = std::aligned_alloc(large_page, room);
  if (memory == nullptr) throw std::bad_alloc();
  (void)madvise(memory, room, MADV_HUGEPAGE);  // optional: without it reading is slower
  words_.reset(static_cast<uint64_t*>(memory));
  std::fill_n(words_.get(), n_words_, 1);
}

double memory_ceiling::measure(uint32_t threads) const {
  using clock = std::chrono::steady_clock;
  std::array<double, 9> passes{};
  std::barrier start_and_end(static_cast<std::ptrdiff_t>(threads));
  std::atomic<uint64_t> kept{0};  // keeps the compiler from removing the reads
  // The caller reads too: a caller that only timed would wait for a core and start the clock late.
  enum : uint8_t { waiting, complete, given_up };
  std::atomic<uint8_t> team{waiting};  // whether all readers have started
  const auto read = [&](uint32_t t) {
    team.wait(waiting);
    if (team == given_up) return;
    const std::size_t begin = n_words_ * t / threads, end = n_words_ * (t + 1) / threads;
    for (double& pass : passes) {
      start_and_end.arrive_and_wait();
      const auto start = clock::now();
      kept += sum(words_.get() + begin, words_.get() + end);
      start_and_end.arrive_and_wait();
      if (t == 0) pass = std::chrono::duration<double>(clock::now() - start).count();
    }
  };
  std::vector<std::jthread> readers;
  readers.reserve(threads);
  const auto decide = [&](uint8_t how) {
    team = how;
    team.notify_all();
  };
  try {
    for (uint32_t t = 1; t < threads; ++t) readers.emplace_back(read, t);
  } catch (...) {
    decide(given_up);
    throw;
  }
  decide(complete);
  read(0);
  return static_cast<double>(bytes()) / std::ranges::min(passes) / 1e9;
}

}  // namespace bitnet::host
