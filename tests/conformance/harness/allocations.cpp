#include "harness/allocations.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <new>

#include "harness/plugin.hpp"

namespace bitnet::conformance::allocations {
namespace {

// Where the plugin's file is mapped; empty until it is asked for.
std::atomic<uintptr_t> plugin_begin{0}, plugin_end{0};
std::atomic<int64_t> asked{0}, refused{-1};

void find_plugin() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(entry_of_plugin()), &found) == 0) return;
  auto base = reinterpret_cast<uintptr_t>(found.dli_fbase);
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* wanted) {
        if (object->dlpi_addr != *static_cast<uintptr_t*>(wanted)) return 0;
        uintptr_t end = 0;
        for (int i = 0; i < object->dlpi_phnum; ++i)
          if (object->dlpi_phdr[i].p_type == PT_LOAD)
            end = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr + object->dlpi_phdr[i].p_memsz;
        plugin_begin = object->dlpi_addr;
        plugin_end = end;
        return 1;
      },
      &base);
}

// Whether this request, which came from `caller`, is the one to refuse. Takes no lock and no
// memory: every allocation of the process passes here.
[[maybe_unused]] bool refuses(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  if (at < plugin_begin.load(std::memory_order_relaxed) ||
      at >= plugin_end.load(std::memory_order_relaxed))
    return false;
  return asked.fetch_add(1) == refused.load();
}

}  // namespace

void refuse(int64_t which) {
  if (plugin_end.load() == 0) find_plugin();
  refused = which;
  asked = 0;
}

int64_t requests() {
  return asked.load();
}

}  // namespace bitnet::conformance::allocations

#if !defined(BITNET_SANITIZED)

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
// glibc's own, under the names that stay when malloc is replaced.
extern "C" {
void* __libc_malloc(std::size_t n);
void* __libc_calloc(std::size_t n, std::size_t size);
void* __libc_realloc(void* old, std::size_t n);
void* __libc_memalign(std::size_t alignment, std::size_t n);
// A sanitizer's, where its run time is preloaded for a plugin that was built with it.
__attribute__((weak)) void* __interceptor_malloc(std::size_t n);
__attribute__((weak)) void* __interceptor_calloc(std::size_t n, std::size_t size);
__attribute__((weak)) void* __interceptor_realloc(void* old, std::size_t n);
__attribute__((weak)) void* __interceptor_memalign(std::size_t alignment, std::size_t n);
}

namespace {

using bitnet::conformance::allocations::refuses;

void* none() {
  errno = ENOMEM;
  return nullptr;
}
void* get(std::size_t n, std::size_t alignment, const void* caller) {
  if (refuses(caller)) return none();
  if (__interceptor_malloc != nullptr)
    return alignment == 0 ? __interceptor_malloc(n) : __interceptor_memalign(alignment, n);
  return alignment == 0 ? __libc_malloc(n) : __libc_memalign(alignment, n);
}
void* get_or_throw(std::size_t n, std::size_t alignment, const void* caller) {
  void* out = get(n, alignment, caller);
  if (out == nullptr) throw std::bad_alloc();
  return out;
}

}  // namespace

#define BITNET_CALLER __builtin_return_address(0)
#define BITNET_SEEN __attribute__((visibility("default"), used, noinline))

extern "C" {

BITNET_SEEN void* malloc(std::size_t n) {
  return get(n, 0, BITNET_CALLER);
}
BITNET_SEEN void* calloc(std::size_t n, std::size_t size) {
  if (refuses(BITNET_CALLER)) return none();
  return __interceptor_calloc != nullptr ? __interceptor_calloc(n, size) : __libc_calloc(n, size);
}
BITNET_SEEN void* realloc(void* old, std::size_t n) {
  if (refuses(BITNET_CALLER)) return none();
  return __interceptor_realloc != nullptr ? __interceptor_realloc(old, n) : __libc_realloc(old, n);
}
BITNET_SEEN void* aligned_alloc(std::size_t alignment, std::size_t n) {
  return get(n, alignment, BITNET_CALLER);
}
BITNET_SEEN int posix_memalign(void** out, std::size_t alignment, std::size_t n) {
  void* memory = get(n, alignment, BITNET_CALLER);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

}  // extern "C"

// Those of the C++ library call malloc from its own code, which would hide the caller.
BITNET_SEEN void* operator new(std::size_t n) {
  return get_or_throw(n, 0, BITNET_CALLER);
}
BITNET_SEEN void* operator new[](std::size_t n) {
  return get_or_throw(n, 0, BITNET_CALLER);
}
BITNET_SEEN void* operator new(std::size_t n, std::align_val_t alignment) {
  return get_or_throw(n, static_cast<std::size_t>(alignment), BITNET_CALLER);
}
BITNET_SEEN void* operator new[](std::size_t n, std::align_val_t alignment) {
  return get_or_throw(n, static_cast<std::size_t>(alignment), BITNET_CALLER);
}
BITNET_SEEN void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return get(n, 0, BITNET_CALLER);
}
BITNET_SEEN void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return get(n, 0, BITNET_CALLER);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

#endif
