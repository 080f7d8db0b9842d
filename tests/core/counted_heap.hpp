#pragma once
// Counts what this program has on its heap. For one source of a program, since it replaces new and
// delete.

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace bitnet::testing_support {

inline std::atomic<std::size_t> heap_live{0};
inline std::atomic<std::size_t> heap_peak{0};

// From where it is made.
class heap_use {
 public:
  heap_use() : before_(heap_live) { heap_peak = before_; }
  [[nodiscard]] std::size_t peak() const { return heap_peak - before_; }

 private:
  std::size_t before_;
};

inline void* counted_new(std::size_t size) {
  void* const out = std::malloc(size);
  if (out == nullptr) throw std::bad_alloc();
  const std::size_t now = heap_live += malloc_usable_size(out);
  if (now > heap_peak) heap_peak = now;
  return out;
}

inline void counted_delete(void* p) noexcept {
  if (p != nullptr) heap_live -= malloc_usable_size(p);
  std::free(p);
}

}  // namespace bitnet::testing_support

void* operator new(std::size_t size) {
  return bitnet::testing_support::counted_new(size);
}
void* operator new[](std::size_t size) {
  return bitnet::testing_support::counted_new(size);
}
void operator delete(void* p) noexcept {
  bitnet::testing_support::counted_delete(p);
}
void operator delete[](void* p) noexcept {
  bitnet::testing_support::counted_delete(p);
}
void operator delete(void* p, std::size_t) noexcept {
  bitnet::testing_support::counted_delete(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  bitnet::testing_support::counted_delete(p);
}
