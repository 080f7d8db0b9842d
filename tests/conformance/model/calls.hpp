#pragma once
// A call over the boundary and what became of it.

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>

#include "bitnet/abi/backend.h"

namespace bitnet::conformance {

// The slot that this thread runs, and that it called last; nullptr: none that is known. And the
// last of any thread.
inline thread_local const char* running_slot = nullptr;
inline thread_local const char* called_slot = nullptr;
inline std::atomic<const char*> last_slot{nullptr};

// A status with the error that came with it.
struct outcome {
  bitnet_status status = BITNET_OK;
  std::string message;
  std::string complaint;  // what is wrong with the error itself; "" if nothing is
};

// Called when something was thrown over the boundary, before it goes on; nullptr: none.
inline void (*on_throw)() = nullptr;

// What a failing slot owes its caller.
inline std::string error_complaint(bitnet_status status, const bitnet_error& err) {
  if (status == BITNET_OK) return "";
  if (err.struct_size != sizeof err) return "it changed the error's struct_size";
  if (std::memchr(err.message, 0, sizeof err.message) == nullptr) return "its message has no end";
  if (err.message[0] == 0) return "it failed without a message";
  if (err.code != status)
    return "it returned status " + std::to_string(status) + " and wrote code " +
           std::to_string(err.code);
  return "";
}

template <class Call>
outcome attempt(Call&& call) {
  bitnet_error err{};
  err.struct_size = sizeof err;
  bitnet_status status = BITNET_INTERNAL;
  try {
    status = call(&err);
  } catch (...) {
    if (on_throw) on_throw();
    throw;
  }
  return {status, std::string(err.message, strnlen(err.message, sizeof err.message)),
          error_complaint(status, err)};
}

// A call that had to succeed and did not.
class call_failed : public std::runtime_error {
 public:
  explicit call_failed(const outcome& o)
      : std::runtime_error((called_slot != nullptr ? called_slot : "a call") +
                           std::string(" failed with status ") + std::to_string(o.status) + ": " +
                           o.message),
        status(o.status),
        complaint(o.complaint) {}
  bitnet_status status;
  std::string complaint;
};

template <class Call>
void must(Call&& call) {
  const outcome o = attempt(call);
  if (o.status != BITNET_OK) throw call_failed(o);
}

}  // namespace bitnet::conformance
