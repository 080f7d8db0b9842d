#include "probe/priority.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

namespace bitnet::probe {
namespace {

namespace fs = std::filesystem;

constexpr int nicest = 19;

void lower(pid_t thread) {
  // From linux/ioprio.h: the idle class for one thread.
  constexpr int of_thread = 1;
  constexpr int idle_class = 3 << 13;
  syscall(SYS_ioprio_set, of_thread, thread, idle_class);
  setpriority(PRIO_PROCESS, static_cast<id_t>(thread), nicest);
  const sched_param none{};
  sched_setscheduler(thread, SCHED_IDLE, &none);
}

// A kernel with autogroups gives each session an equal share, whatever the classes of its threads.
void lower_session() {
  if (getsid(0) != getpid()) return;
  constexpr int tries = 30;  // the kernel permits one such change per 0.1 s, system-wide
  for (int i = 0; i < tries; ++i) {
    std::ofstream out("/proc/self/autogroup");
    if (!out) return;
    if (out << nicest << std::flush) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void add_threads(pid_t process, std::vector<pid_t>& out, int deepest) {
  std::error_code ignored;
  fs::directory_iterator all("/proc/" + std::to_string(process) + "/task", ignored);
  for (; !ignored && all != fs::directory_iterator(); all.increment(ignored)) {
    out.push_back(static_cast<pid_t>(std::atoi(all->path().filename().c_str())));
    if (deepest == 0) continue;
    std::ifstream children(all->path() / "children");
    for (pid_t child = 0; children >> child;) add_threads(child, out, deepest - 1);
  }
}

// The second number of schedstat: nanoseconds in which the thread was runnable without a CPU.
uint64_t waited_ns(pid_t thread) {
  std::ifstream in("/proc/" + std::to_string(thread) + "/schedstat");
  uint64_t ran = 0;
  uint64_t waited = 0;
  in >> ran >> waited;
  return in ? waited : 0;
}

}  // namespace

std::vector<pid_t> threads_below(pid_t process) {
  constexpr int deepest = 8;
  std::vector<pid_t> out;
  add_threads(process, out, deepest);
  return out;
}

void be_idle() {
  lower_session();
  be_idle(getpid());
}

void be_idle(pid_t process) {
  // Twice, since a thread may start another one before it is lowered.
  for (int i = 0; i < 2; ++i)
    for (const pid_t thread : threads_below(process)) lower(thread);
}

void waiting_for_cpu::begin(pid_t process) {
  before_ns_.clear();
  for (const pid_t thread : threads_below(process)) before_ns_.emplace(thread, waited_ns(thread));
}

uint64_t waiting_for_cpu::ms(pid_t process) const {
  uint64_t most_ns = 0;
  for (const pid_t thread : threads_below(process)) {
    const auto before = before_ns_.find(thread);
    const uint64_t now_ns = waited_ns(thread);
    const uint64_t then_ns = before == before_ns_.end() ? 0 : before->second;
    if (now_ns > then_ns) most_ns = std::max(most_ns, now_ns - then_ns);
  }
  return most_ns / 1'000'000;
}

}  // namespace bitnet::probe
