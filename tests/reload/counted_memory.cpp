#include "counted_memory.hpp"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

std::atomic<int64_t> live{0}, live_bytes{0};

[[maybe_unused]] void* taken(void* p) {
  if (p == nullptr) return p;
  live.fetch_add(1, std::memory_order_relaxed);
  live_bytes.fetch_add(static_cast<int64_t>(malloc_usable_size(p)), std::memory_order_relaxed);
  return p;
}
[[maybe_unused]] void given_back(void* p) {
  if (p == nullptr) return;
  live.fetch_sub(1, std::memory_order_relaxed);
  live_bytes.fetch_sub(static_cast<int64_t>(malloc_usable_size(p)), std::memory_order_relaxed);
}

int64_t entries(const char* folder) {
  int64_t n = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator(folder)) ++n;
  return n;
}

}  // namespace

namespace bitnet::test {

holdings count_holdings() {
  holdings out;
  out.allocations = live.load();
  out.bytes = live_bytes.load();
  // An arena that malloc makes for a thread is its own affair, and so is how it cuts its pages:
  // what counts is mapped files.
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find('/') != std::string::npos) ++out.mappings;
  out.descriptors = entries("/proc/self/fd");
  out.threads = entries("/proc/self/task");
  return out;
}

}  // namespace bitnet::test

#if !defined(BITNET_SANITIZED)
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
// glibc's own, under the names that stay when malloc is replaced.
extern "C" {
void* __libc_malloc(std::size_t n);
void* __libc_calloc(std::size_t n, std::size_t size);
void* __libc_realloc(void* old, std::size_t n);
void* __libc_memalign(std::size_t alignment, std::size_t n);
void __libc_free(void* p);

void* malloc(std::size_t n) {
  return taken(__libc_malloc(n));
}
void* calloc(std::size_t n, std::size_t size) {
  return taken(__libc_calloc(n, size));
}
void* realloc(void* old, std::size_t n) {
  given_back(old);
  void* now = __libc_realloc(old, n);
  if (now == nullptr && n != 0) taken(old);  // which stays as it is
  return taken(now);
}
void* aligned_alloc(std::size_t alignment, std::size_t n) {
  return taken(__libc_memalign(alignment, n));
}
int posix_memalign(void** out, std::size_t alignment, std::size_t n) {
  void* p = taken(__libc_memalign(alignment, n));
  if (p == nullptr) return ENOMEM;
  *out = p;
  return 0;
}
void free(void* p) {
  given_back(p);
  __libc_free(p);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
#endif
