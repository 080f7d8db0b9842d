#pragma once
// Handles that are alive, and what streams still have to do.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "hip.hpp"
#include "stand_ins/worker.hpp"

namespace stand_in {

using namespace bitnet::rocm;

[[noreturn, gnu::format(printf, 1, 2)]] void give_up(const char* format, ...);

// hipSuccess, or what the call has to answer. A device that is lost answers so ever after.
hipError_t begin(const char* call);
// From now on the device is lost: every call that begins answers `with`.
void lose(hipError_t with);
// Calls that give back or wait do not begin so: they do it even when they fail.
#define STAND_IN_BEGIN() \
  if (const hipError_t answer = stand_in::begin(__func__); answer != hipSuccess) return answer

int current_device();

enum class kind : uint8_t { stream, event, module, function, memory, pinned };

// What was made and not yet destroyed. Each object is of a device; pinned memory is of all.
class registry {
 public:
  void add(const void* handle, kind what, uint64_t bytes = 0);
  void remove(const void* handle, kind what, const char* call);
  // Alive, and of the thread's device.
  void check(const void* handle, kind what, const char* call) const;
  // Memory [at, at + bytes) lies in one that is alive, and that the thread's device sees.
  void check_memory(const void* at, uint64_t bytes, int device, const char* call) const;
  uint64_t count() const;
  uint64_t bytes(int device) const;  // of device memory

 private:
  struct object {
    kind what;
    int device;
    uint64_t bytes;
  };
  object find(const void* handle, kind what, const char* call) const;
  mutable std::mutex lock_;
  std::map<const void*, object> alive_;
};
registry& objects();

worker& jobs();

}  // namespace stand_in
