#pragma once
// Work on many tensors, or pieces of them, by all threads at once.
//
// Threads  each(n, f) calls f(i) once for every i < n, in no order and on several threads, and
//          returns when all are done. After the first exception, which it passes on, the rest is
//          left out.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "threads/pool.hpp"

namespace bitnet::convert {

class workers {
 public:
  // 0: as many as are of use on this machine.
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
      std::exception_ptr failed{};  // written by the first, read after all are done
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
