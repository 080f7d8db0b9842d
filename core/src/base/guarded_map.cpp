#include "base/guarded_map.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>

namespace bitnet {
namespace {

// The handler may interrupt any code: it uses only lock-free atomics and system calls.
std::atomic<guarded_map::row*> rows{nullptr};
std::atomic<uintptr_t> page_size{0};
struct sigaction before{};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);
static_assert(std::atomic<guarded_map::row*>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

// Maps zeros from the missing page to the end, which is missing, too. Returns false if the address
// is in none of the maps.
bool fill(uintptr_t address) {
  for (guarded_map::row* r = rows.load(std::memory_order_acquire); r != nullptr; r = r->next) {
    const uintptr_t begin = r->begin.load(std::memory_order_acquire);
    const std::size_t size = r->size.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address - begin >= size) continue;
    const uintptr_t page = address & ~(page_size.load(std::memory_order_relaxed) - 1);
    r->lost.store(true, std::memory_order_release);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gave a number
    void* const at = reinterpret_cast<void*>(page);
    return ::mmap(at, begin + size - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                  0) != MAP_FAILED;
  }
  return false;
}

void hand_on(int signal, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
    return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return before.sa_handler(signal);
  // A fault cannot be ignored: it repeats when this returns, and then ends the process as it would
  // without this handler. A signal that a process sent does not repeat.
  if (before.sa_handler == SIG_IGN && info->si_code <= 0) return;
  struct sigaction none{};
  none.sa_handler = SIG_DFL;
  (void)::sigaction(signal, &none, nullptr);
  if (info->si_code <= 0) (void)std::raise(signal);
}

extern "C" void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  if (info->si_code != BUS_ADRERR || !fill(reinterpret_cast<uintptr_t>(info->si_addr)))
    hand_on(signal, info, context);
  errno = saved;
}

void install() {
  page_size.store(static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), std::memory_order_relaxed);
  struct sigaction ours{};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;  // on the thread's signal stack, if it has one
  sigemptyset(&ours.sa_mask);
  (void)::sigaction(SIGBUS, nullptr, &before);
  (void)::sigaction(SIGBUS, &ours, nullptr);
}

guarded_map::row* take_row() {
  for (guarded_map::row* r = rows.load(std::memory_order_acquire); r != nullptr; r = r->next)
    if (!r->taken.exchange(true)) return r;
  auto* const made = new guarded_map::row;
  made->taken = true;
  made->next = rows.load(std::memory_order_relaxed);
  while (!rows.compare_exchange_weak(made->next, made, std::memory_order_release)) {
  }
  return made;
}

}  // namespace

std::optional<guarded_map> guarded_map::open(int fd, std::size_t size) {
  guarded_map out;
  if (size == 0) return out;
  static std::once_flag once;
  std::call_once(once, install);
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (at == MAP_FAILED) return std::nullopt;
  row* const r = take_row();
  r->lost = false;
  r->size = size;
  r->begin = reinterpret_cast<uintptr_t>(at);
  out.row_.reset(r);
  return out;
}

void guarded_map::unmapper::operator()(row* r) const {
  const uintptr_t begin = r->begin.exchange(0);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as mmap gave it
  ::munmap(reinterpret_cast<void*>(begin), r->size);
  r->taken = false;
}

std::span<const std::byte> guarded_map::bytes() const {
  if (!row_) return {};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as mmap gave it
  return {reinterpret_cast<const std::byte*>(row_->begin.load()), row_->size.load()};
}

void guarded_map::give_back(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + part.size()) / page * page;
  if (first >= last) return;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): whole pages of the span
  (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

bool guarded_map::is_lost() const {
  return row_ && row_->lost.load(std::memory_order_acquire);
}

}  // namespace bitnet
