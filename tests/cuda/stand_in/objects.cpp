#include "objects.hpp"

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "calls.hpp"
#include "simt.hpp"

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
  static worker one(wanted().at_once != 0);
  return one;
}

namespace {

// Runs on this thread, at most two at a time: its first group begins, or all of it is run.
class kernel_run {
 public:
  explicit kernel_run(const node& n) : node_(&n) {
    for (const bitnet::kernels::launch& one : n.arguments.of)
      for (const uint64_t at : one.memory)
        if (at != 0) objects().check_memory(at, 4, n.run->name.c_str());
    simt::wrong_products = wanted().wrong_groups != 0;
    simt::lost_boxes = wanted().lost_boxes != 0;
    simt::architecture = wanted().code == 0 ? wanted().arch : wanted().code;
  }
  void begin() { begun_.emplace(call, node_, how()); }
  void run() {
    if (begun_)
      begun_->finish();
    else
      simt::run(call, node_, how());
    if (node_->run->name == wanted().hangs) return jobs().hang();
    if (node_->run->name == wanted().loses) return lose(CUDA_ERROR_ILLEGAL_ADDRESS);
    const auto from = static_cast<uint32_t>(wanted().wrong_from);
    if (node_->run->name != wanted().wrong || node_->groups_x < from) return;
    uint64_t written = 0;
    for (const uint64_t at : node_->arguments.of[0].memory)
      if (at != 0) written = at;
    *reinterpret_cast<uint32_t*>(written) ^= 1;
  }

 private:
  static void call(const void* n) {
    const auto& one = *static_cast<const node*>(n);
    if (one.run->joined)
      reinterpret_cast<joined_function>(one.run->run)(one.arguments);
    else
      reinterpret_cast<kernel_function>(one.run->run)(one.arguments.of[0]);
  }
  simt::grid how() const {
    return {{node_->groups_x, node_->groups_y, 1},
            node_->threads,
            node_->shared_bytes,
            true,
            node_->run->name.c_str(),
            wanted().backwards != 0};
  }

  const node* node_;
  std::optional<simt::early> begun_;
};

void run_other(const node& n) {
  if (n.clock) {
    n.clock->reached_ns = static_cast<uint64_t>(
        std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
    return;
  }
  objects().check_memory(n.from, n.bytes, "copy from");
  objects().check_memory(n.to, n.bytes, "copy to");
  std::memcpy(reinterpret_cast<void*>(n.to), reinterpret_cast<const void*>(n.from), n.bytes);
}

// The nodes of a graph, in an order that shows what an edge is needed for.
class order {
 public:
  explicit order(const std::vector<node>& nodes)
      : nodes_(nodes), left_(nodes.size()), next_(nodes.size()) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      left_[i] = nodes[i].after.size();
      for (const node::edge& e : nodes[i].after) next_[e.from].push_back({i, e.beside});
      if (left_[i] == 0) can_.push_back(i);
    }
  }

  // Of the nodes that may run, the last that was added comes first, so that a forgotten edge shows.
  void run() {
    while (!can_.empty()) {
      const size_t i = can_.back();
      can_.pop_back();
      std::optional<kernel_run> mine;
      if (begun_ && begins_ == i) {
        mine = std::exchange(begun_, std::nullopt);
      } else if (nodes_[i].run) {
        mine.emplace(nodes_[i]);
      }
      begin_beside(i);
      if (mine)
        mine->run();
      else
        run_other(nodes_[i]);
      for (const auto& [n, beside] : next_[i])
        if (--left_[n] == 0) can_.push_back(n);
    }
  }

 private:
  // What may begin beside this one, and lacks nothing else, does so before any of this is done.
  void begin_beside(size_t i) {
    if (begun_) return;
    for (auto n = next_[i].rbegin(); n != next_[i].rend() && !begun_; ++n) {
      if (!n->beside || left_[n->to] != 1) continue;
      begins_ = n->to;
      begun_.emplace(nodes_[n->to]);
      begun_->begin();
    }
  }

  struct edge {
    size_t to;
    bool beside;
  };
  const std::vector<node>& nodes_;
  std::vector<size_t> left_;
  std::vector<std::vector<edge>> next_;
  std::vector<size_t> can_;
  std::optional<kernel_run> begun_;
  size_t begins_ = 0;
};

}  // namespace

void run_nodes(const std::vector<node>& nodes) {
  order(nodes).run();
}

}  // namespace stand_in
