#pragma once
// Handles that are alive, and what a stream still has to do.

#include <cuda.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "plugins/cuda/kernels/launch.hpp"
#include "stand_ins/worker.hpp"

namespace stand_in {

[[noreturn, gnu::format(printf, 1, 2)]] void give_up(const char* format, ...);

enum class kind : uint8_t {
  context,
  stream,
  event,
  module,
  function,
  memory,
  pinned,
  graph,
  ready
};

// What was made and not yet destroyed.
class registry {
 public:
  void add(const void* handle, kind what, uint64_t bytes = 0);
  void remove(const void* handle, kind what, const char* call);
  void check(const void* handle, kind what, const char* call) const;
  // Memory [at, at + bytes) lies in one that is alive.
  void check_memory(uint64_t at, uint64_t bytes, const char* call) const;
  void check_empty(const char* when) const;
  uint64_t count() const;
  uint64_t bytes() const;  // of device memory

 private:
  struct object {
    kind what;
    uint64_t bytes;
  };
  mutable std::mutex lock_;
  std::map<const void*, object> alive_;
  uint64_t bytes_ = 0;
};
registry& objects();

worker& jobs();

using kernel_function = void (*)(bitnet::kernels::launch);
using joined_function = void (*)(bitnet::kernels::joined_launch);

struct stream {
  uint64_t last = 0;
};
struct event {
  bool timed = false;
  uint64_t ticket = 0;
  uint64_t reached_ns = 0;
};
struct function {
  std::string name;
  void* run;                            // a kernel_function
  bool joined;                          // or a joined_function
  unsigned int most_shared = 48 << 10;  // what a launch may ask for
};
struct module {
  std::vector<function*> functions;
};
struct node {
  const function* run = nullptr;
  bitnet::kernels::joined_launch arguments{};  // or its first launch alone
  unsigned int groups_x = 1, groups_y = 1, threads = 1, shared_bytes = 0;
  uint64_t from = 0, to = 0, bytes = 0;  // of a copy
  event* clock = nullptr;
  struct edge {
    size_t from;
    bool beside;  // programmatic: this may begin while `from` runs
  };
  std::vector<edge> after;
};
struct graph {
  std::vector<node*> nodes;
};
struct ready {
  std::vector<node> nodes;
  bool beside = false;  // some edge is programmatic
};

void run_nodes(const std::vector<node>& nodes);

}  // namespace stand_in
