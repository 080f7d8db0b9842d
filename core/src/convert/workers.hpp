#pragma once
// Runs work on many tensors, or pieces of them, on all threads.
//
// Threads  each(n, f) calls f(i) once for every i < n, in any order on several threads, and returns
//          when all are done. The first exception is passed on, and the remaining calls are
//          skipped.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "threads/pool.hpp"

namespace bitnet::convert {

class workers {
 public:
  // 0: as many as this machine can use.
  explicit workers(uint32_t n_threads)
      : pool_(n_threads == 0 ? threads::available() : n_threads, {.poll = 0, .cpus = {}}) {}

  [[nodiscard]] uint32_t width() const { return pool_.width(); }

  template <class F>
  void each(std::size_t n, F&& f) {
    struct shared {
      F& f;
      std::size_t n;
      std::atomic<std::size_t> next{0};
      std::atomic<bool> has_failed{false};
      std::exception_ptr failed{};  // written by the first failure, read after all are done
    } all{f, n};
    // Cannot fail: the width is the pool's own, and no task calls this.
    static_cast<void>(pool_.run(
        pool_.width(),
        [](void* arg, uint32_t, uint32_t) {
          auto& to_do = *static_cast<shared*>(arg);
          try {
            for (std::size_t i = to_do.next++; i < to_do.n; i = to_do.next++) to_do.f(i);
          } catch (...) {
            to_do.next = to_do.n;
            if (!to_do.has_failed.exchange(true)) to_do.failed = std::current_exception();
          }
        },
        &all));
    if (all.failed) std::rethrow_exception(all.failed);
  }

 private:
  threads::pool pool_;
};

}  // namespace bitnet::convert
