#pragma once
// A stack and where it goes on. Switching takes no system call, unlike swapcontext().

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define BITNET_SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BITNET_SIMT_ASAN 1
#endif
#endif
#ifdef BITNET_SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt {

struct fiber {
  void* top = nullptr;   // of its stack, while it does not run
  void* fake = nullptr;  // AddressSanitizer's
  const void* stack = nullptr;
  size_t bytes = 0;
};

// Saves registers that calls keep on the stack, and goes on where the other stack was left.
extern "C" void simt_switch(void** save, void* to);

#ifdef BITNET_SIMT_ASAN
// Of the stack that runs now, for the fiber that is switched to from it.
inline void* came_back_as = nullptr;
inline fiber* left_from = nullptr;
#endif

inline void entered_fiber() {
#ifdef BITNET_SIMT_ASAN
  const void* bottom = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(came_back_as, &bottom, &size);
  if (left_from && !left_from->stack) {  // the scheduler's, which was not allocated here
    left_from->stack = bottom;
    left_from->bytes = size;
  }
#endif
}

inline void switch_fiber(fiber& from, fiber& to, [[maybe_unused]] bool for_ever) {
#ifdef BITNET_SIMT_ASAN
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &from.fake, to.stack, to.bytes);
  came_back_as = to.fake;
  left_from = &from;
#endif
  simt_switch(&from.top, to.top);
  entered_fiber();
}

// The stack is empty, and the first switch to it calls `function`, which does not return.
inline void prepare_fiber(fiber& f, void (*function)()) {
  auto* end =
      reinterpret_cast<uintptr_t*>((reinterpret_cast<uintptr_t>(f.stack) + f.bytes) / 16 * 16);
#if defined(__x86_64__)
  uintptr_t* top = end - 8;  // six registers, where to go on, and one that aligns
  for (int i = 0; i < 6; ++i) top[i] = 0;
  top[6] = reinterpret_cast<uintptr_t>(function);
  top[7] = 0;
#elif defined(__aarch64__)
  uintptr_t* top = end - 20;  // x19 to x30, d8 to d15
  for (int i = 0; i < 20; ++i) top[i] = 0;
  top[11] = reinterpret_cast<uintptr_t>(function);
#else
#error "no way to switch stacks on this processor"
#endif
#ifdef BITNET_SIMT_ASAN
  // The last fiber on this stack did not return from its first calls: poison stays around them.
  constexpr size_t of_first_calls = size_t{16} << 10;
  __asan_unpoison_memory_region(reinterpret_cast<char*>(end) - of_first_calls, of_first_calls);
#endif
  f.top = top;
  f.fake = nullptr;
}

}  // namespace simt
