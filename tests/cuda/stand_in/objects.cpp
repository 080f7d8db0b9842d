#include "objects.hpp"

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simt.hpp"
#include "stand_in.hpp"

namespace stand_in {

void give_up(const char* format, ...) {
  std::fputs("stand-in for libcuda: ", stderr);
  va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fputs("\n", stderr);
  std::abort();
}

namespace {
constexpr const char* words[] = {"context", "stream", "event", "module",  "function",
                                 "memory",  "pinned", "graph", "instance"};
const char* word(kind what) {
  return words[static_cast<int>(what)];
}
}  // namespace

registry& objects() {
  static auto* all = new registry;  // what runs at exit may still ask
  return *all;
}

void registry::add(const void* handle, kind what, uint64_t bytes) {
  const std::scoped_lock held(lock_);
  alive_[handle] = {what, bytes};
  if (what == kind::memory) bytes_ += bytes;
}

void registry::check(const void* handle, kind what, const char* call) const {
  const std::scoped_lock held(lock_);
  const auto found = alive_.find(handle);
  if (found == alive_.end() || found->second.what != what)
    give_up("%s: %p is no %s that is alive", call, handle, word(what));
}

void registry::remove(const void* handle, kind what, const char* call) {
  check(handle, what, call);
  const std::scoped_lock held(lock_);
  if (what == kind::memory) bytes_ -= alive_[handle].bytes;
  alive_.erase(handle);
}

void registry::check_memory(uint64_t at, uint64_t bytes, const char* call) const {
  const std::scoped_lock held(lock_);
  auto found = alive_.upper_bound(reinterpret_cast<const void*>(at));
  while (found != alive_.begin()) {
    --found;
    const auto [what, size] = found->second;
    if (what != kind::memory && what != kind::pinned) continue;
    const uint64_t begin = reinterpret_cast<uint64_t>(found->first);
    if (at >= begin && at - begin <= size && bytes <= size - (at - begin)) return;
    break;
  }
  give_up("%s: %llu bytes at %#llx are not in memory that is alive", call,
          static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(at));
}

void registry::check_empty(const char* when) const {
  const std::scoped_lock held(lock_);
  uint64_t left = 0;
  for (const auto& [handle, one] : alive_) {
    if (one.what == kind::context) continue;
    std::fprintf(stderr, "stand-in for libcuda: %s: %s %p is left over\n", when, word(one.what),
                 handle);
    ++left;
  }
  if (left != 0)
    give_up("%s: %llu objects are left over", when, static_cast<unsigned long long>(left));
}

uint64_t registry::count() const {
  const std::scoped_lock held(lock_);
  return alive_.size();
}

uint64_t registry::bytes() const {
  const std::scoped_lock held(lock_);
  return bytes_;
}

worker& jobs() {
  static worker one;
  return one;
}

worker::~worker() {
  {
    const std::scoped_lock held(lock_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

uint64_t worker::add(std::function<void()> job) {
  const std::scoped_lock held(lock_);
  if (wanted().at_once != 0) {
    job();
    ++done_;
    return ++given_;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return ++given_;
}

bool worker::is_done(uint64_t ticket) const {
  const std::scoped_lock held(lock_);
  return done_ >= ticket;
}

void worker::wait(uint64_t ticket) {
  std::unique_lock held(lock_);
  changed_.wait(held, [&] { return done_ >= ticket; });
}

void worker::wait_for_all() {
  std::unique_lock held(lock_);
  const uint64_t last = given_;  // others may go on giving jobs for ever
  changed_.wait(held, [&] { return done_ >= last; });
}

void worker::work() {
  std::unique_lock held(lock_);
  for (;;) {
    changed_.wait(held, [&] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    held.unlock();
    job();
    held.lock();
    ++done_;
    changed_.notify_all();
  }
}

namespace {

void run_node(const node& n) {
  if (n.clock) {
    n.clock->reached_ns = static_cast<uint64_t>(
        std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  } else if (n.run) {
    for (const uint64_t at : n.arguments.memory)
      if (at != 0) objects().check_memory(at, 4, n.run->name.c_str());
    struct call {
      kernel_function run;
      const bitnet::cuda::launch* arguments;
    } const what{n.run->run, &n.arguments};
    simt::architecture = wanted().code == 0 ? wanted().arch : wanted().code;
    simt::run(
        [](const void* c) {
          const auto& one = *static_cast<const call*>(c);
          one.run(*one.arguments);
        },
        &what, {{n.groups_x, n.groups_y, 1}, n.threads, n.shared_bytes});
  } else {
    objects().check_memory(n.from, n.bytes, "copy from");
    objects().check_memory(n.to, n.bytes, "copy to");
    std::memcpy(reinterpret_cast<void*>(n.to), reinterpret_cast<const void*>(n.from), n.bytes);
  }
}

}  // namespace

// Of the nodes that may run, the last that was added comes first: whoever forgot an edge sees it.
void run_nodes(const std::vector<node>& nodes) {
  std::vector<bool> done(nodes.size());
  std::vector<size_t> left(nodes.size());
  std::vector<std::vector<size_t>> next(nodes.size());
  std::vector<size_t> can;
  for (size_t i = 0; i < nodes.size(); ++i) {
    left[i] = nodes[i].after.size();
    for (const size_t a : nodes[i].after) next[a].push_back(i);
    if (left[i] == 0) can.push_back(i);
  }
  while (!can.empty()) {
    const size_t i = can.back();
    can.pop_back();
    run_node(nodes[i]);
    for (const size_t n : next[i])
      if (--left[n] == 0) can.push_back(n);
  }
}

}  // namespace stand_in
