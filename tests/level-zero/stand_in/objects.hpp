#pragma once
// Handles of the stand-in: an object of each kind, counted, and known to be alive.

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "compute.hpp"
#include "stand_in.hpp"

namespace stand_in {

// Ends the process.
[[noreturn]] void complain(const std::string& sentence);

// One lock for all calls.
std::recursive_mutex& everything();

// Kinds: an object that is not in here is not alive.
void born(const void* object, const char* kind);
void dies(const void* object, const char* kind);
void alive(const void* object, const char* kind);

struct context {
  uint32_t objects = 0;  // that are alive in it
  std::map<uint8_t*, size_t> memory;
};
struct event_pool {
  context* in;
  bool timed;
  std::vector<bool> used;
};
struct event {
  event_pool* in;
  uint32_t index;
  bool signalled = false;
  uint64_t begin_ns = 0, end_ns = 0;
};
struct spirv_module {
  context* in;
  program code;
  uint32_t kernels = 0;
};
struct kernel {
  spirv_module* in;
  std::string name;
  uint32_t group_size = 0;
  std::vector<std::vector<uint8_t>> arguments;
};
struct command {
  kernel_call run;
  std::string name;  // of a kernel; empty: a copy or a fill
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
  bool fills = false;
  uint8_t fill = 0;
  event* done = nullptr;
};
struct list {
  context* in;
  bool synchronous;
  std::vector<command> waiting;  // since the last barrier
};

void signal(event* e, uint64_t begin_ns, uint64_t end_ns);
uint64_t now_ns();
// Whether the bytes lie in an allocation of the context, or else in memory of the process.
bool allocated(const context& in, const void* at, size_t bytes);

template <class Object, class Handle>
Object& as(Handle handle, const char* kind) {
  alive(handle, kind);
  return *reinterpret_cast<Object*>(handle);
}

}  // namespace stand_in
