#include "objects.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "stand_in.hpp"

namespace stand_in {

void give_up(const char* format, ...) {
  std::fputs("stand-in for libamdhip64: ", stderr);
  va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fputs("\n", stderr);
  std::abort();
}

namespace {

const char* word(kind what) {
  constexpr const char* words[] = {"stream", "event", "module", "function", "memory", "pinned"};
  return words[static_cast<int>(what)];
}

// A device that was not closed leaves its streams.
struct at_exit {
  ~at_exit() {
    if (objects().count() != 0)
      give_up("the process ends and %llu objects are left over",
              static_cast<unsigned long long>(objects().count()));
  }
} const end;

}  // namespace

registry& objects() {
  static auto* all = new registry;  // what runs at exit may still ask
  return *all;
}

void registry::add(const void* handle, kind what, uint64_t bytes) {
  const std::scoped_lock held(lock_);
  alive_[handle] = {what, current_device(), bytes};
}

registry::object registry::find(const void* handle, kind what, const char* call) const {
  const std::scoped_lock held(lock_);
  const auto found = alive_.find(handle);
  if (found == alive_.end() || found->second.what != what)
    give_up("%s: %p is no %s that is alive", call, handle, word(what));
  return found->second;
}

void registry::check(const void* handle, kind what, const char* call) const {
  const int device = find(handle, what, call).device;
  if (device != current_device() && what != kind::pinned)
    give_up("%s: the %s is of device %d, and %d is the thread's", call, word(what), device,
            current_device());
}

void registry::remove(const void* handle, kind what, const char* call) {
  check(handle, what, call);
  const std::scoped_lock held(lock_);
  alive_.erase(handle);
}

void registry::check_memory(const void* at, uint64_t bytes, int device, const char* call) const {
  const std::scoped_lock held(lock_);
  auto found = alive_.upper_bound(at);
  while (found != alive_.begin()) {
    --found;
    const object& one = found->second;
    if (one.what != kind::memory && one.what != kind::pinned) continue;
    const auto offset = static_cast<uint64_t>(static_cast<const char*>(at) -
                                              static_cast<const char*>(found->first));
    if (offset > one.bytes || bytes > one.bytes - offset) break;
    if (one.what == kind::memory && one.device != device)
      give_up("%s: memory of device %d for device %d", call, one.device, device);
    return;
  }
  give_up("%s: %llu bytes at %p are not in memory that is alive", call,
          static_cast<unsigned long long>(bytes), at);
}

uint64_t registry::count() const {
  const std::scoped_lock held(lock_);
  return alive_.size();
}

uint64_t registry::bytes(int device) const {
  const std::scoped_lock held(lock_);
  uint64_t out = 0;
  for (const auto& [handle, one] : alive_)
    if (one.what == kind::memory && one.device == device) out += one.bytes;
  return out;
}

worker& jobs() {
  static worker one(wanted().at_once != 0);
  return one;
}

}  // namespace stand_in
