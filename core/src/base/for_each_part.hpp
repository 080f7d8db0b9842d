#pragma once
// Work on memory that several threads read faster than one.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace bitnet::base {

// Runs visit(i), which may not throw, for each i below n: on the caller's thread and a few that are
// made for it, as far as the system has any. One part is the caller's, at no cost.
template <class Visit>
void for_each_part(uint64_t n, const Visit& visit) {
  if (n == 1) return visit(0);
  std::atomic<uint64_t> next{0};
  const auto work = [&] {
    for (uint64_t i = next.fetch_add(1); i < n; i = next.fetch_add(1)) visit(i);
  };
  constexpr unsigned most_threads = 4;
  // Asked once: the system reads a file for it.
  static const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, most_threads);
  std::vector<std::jthread> others;
  const auto add_thread = [&] {
    try {
      others.emplace_back(work);
      return true;
    } catch (const std::exception&) {
      return false;  // none are to be had: those that there are do all of it
    }
  };
  for (unsigned t = 1; t < threads && t < n && add_thread();) ++t;
  work();
}

}  // namespace bitnet::base
