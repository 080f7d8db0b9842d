#pragma once
// Runs work that reads memory on several threads, which together read faster than one.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace bitnet::base {

// Calls visit(i), which may not throw, for each i < n: on the caller's thread and on a few new
// ones, if the system has some. With n = 1 no thread is started.
template <class Visit>
void for_each_part(uint64_t n, const Visit& visit) {
  if (n == 1) return visit(0);
  std::atomic<uint64_t> next{0};
  const auto work = [&] {
    for (uint64_t i = next.fetch_add(1); i < n; i = next.fetch_add(1)) visit(i);
  };
  constexpr unsigned most_threads = 4;
  // Cached: each query reads a file of the system.
  static const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, most_threads);
  std::vector<std::jthread> others;
  const auto add_thread = [&] {
    try {
      others.emplace_back(work);
      return true;
    } catch (const std::exception&) {
      return false;  // no thread available: the existing ones do all the work
    }
  };
  for (unsigned t = 1; t < threads && t < n && add_thread();) ++t;
  work();
}

}  // namespace bitnet::base
