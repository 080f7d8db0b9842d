#include "plugin/loading/kept_state.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace bitnet::plugin {
namespace {

#if defined(__x86_64__)
constexpr unsigned sse_flags = 0x3f;  // exception flags, not modes
#endif

std::atomic<bool> state_left_alone{false};

// From /proc/self/status: umask() would change it for other threads, too.
long mask_of_modes() {
  const file_descriptor fd(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::array<char, 512> text{};  // the umask is on the second line
  if (fd.get() < 0 || ::read(fd.get(), text.data(), text.size() - 1) <= 0) return -1;
  const char* at = std::strstr(text.data(), "\nUmask:");
  return at == nullptr ? -1 : std::strtol(at + 7, nullptr, 8);
}

bool same_signals(const sigset_t& a, const sigset_t& b) {
  for (int number = 1; number < NSIG; ++number)
    if (sigismember(&a, number) != sigismember(&b, number)) return false;
  return true;
}

}  // namespace

uint64_t floating_point_modes() {
#if defined(__x86_64__)
  uint16_t x87 = 0;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return (_mm_getcsr() & ~sse_flags) | static_cast<uint64_t>(x87) << 32;
#elif defined(__aarch64__)
  uint64_t fpcr = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
#else
  return static_cast<uint64_t>(std::fegetround());
#endif
}

void set_floating_point_modes(uint64_t modes) {
#if defined(__x86_64__)
  _mm_setcsr((_mm_getcsr() & sse_flags) | static_cast<unsigned>(modes));
  const auto x87 = static_cast<uint16_t>(modes >> 32);
  __asm__ volatile("fldcw %0" : : "m"(x87));
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(modes));
#else
  std::fesetround(static_cast<int>(modes));
#endif
}

void complaints::note(const char* what) {
  {
    const std::scoped_lock lock(mutex_);
    if (!reported_.insert(what).second) return;
  }
  host_.log(
      BITNET_LOG_WARN, "plugin",
      fmt::format("backend {} {}, which no plugin may (BR-10); it was put back", name_, what));
}

void leave_state_alone() {
  state_left_alone = true;
}

kept_thread::kept_thread(complaints& to) : to_(to), modes_(floating_point_modes()) {
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked_);
}

kept_thread::~kept_thread() {
  if (state_left_alone) return;
  if (floating_point_modes() != modes_) {
    set_floating_point_modes(modes_);
    to_.note("changed the floating-point modes");
  }
  sigset_t now;
  if (pthread_sigmask(SIG_BLOCK, nullptr, &now) != 0 || same_signals(now, blocked_)) return;
  pthread_sigmask(SIG_SETMASK, &blocked_, nullptr);
  to_.note("changed the blocked signals");
}

kept_process::kept_process(std::shared_ptr<complaints> to)
    : to_(std::move(to)),
      thread_(*to_),
      folder_(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)),
      mask_(mask_of_modes()) {
  struct stat facts{};
  if (folder_.get() < 0 || fstat(folder_.get(), &facts) != 0) return;
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
}

kept_process::~kept_process() {
  if (state_left_alone) return;
  struct stat facts{};
  const bool known = folder_.get() >= 0 && inode_ != 0;
  if (known && (stat(".", &facts) != 0 || facts.st_dev != device_ || facts.st_ino != inode_) &&
      fchdir(folder_.get()) == 0)
    to_->note("changed the working folder");
  if (mask_ < 0 || mask_of_modes() == mask_) return;
  umask(static_cast<mode_t>(mask_));
  to_->note("changed the mask of modes");
}

void run_kept(void* kept, uint32_t index, uint32_t n) {
  const auto& mine = *static_cast<const kept_task*>(kept);
  const uint64_t modes = floating_point_modes();
  mine.task(mine.arg, index, n);
  if (floating_point_modes() != modes) set_floating_point_modes(modes);
}

}  // namespace bitnet::plugin
