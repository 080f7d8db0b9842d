#pragma once
// An instance of the library, and waiting for its answers. They come in callbacks, which the
// library calls while events are processed.
//
// Threads  libraries need not be thread-safe, so each call is made under `lock`. A thread may lock
//          it recursively, since objects release themselves under it.

#include <memory>
#include <mutex>
#include <string>

#include "bitnet/sdk/guard.hpp"
#include "library.hpp"

namespace bitnet::webgpu {

// The content of a callback. It lives until the caller and the library are done with it.
struct answer {
  bool given = false;
  uint32_t status = 0, type = 0;
  void* handle = nullptr;
  std::string message;

  // Makes userdata1 of a callback; the callback passes it to take().
  static void* give(const std::shared_ptr<answer>& to) { return new std::shared_ptr<answer>(to); }
  static std::shared_ptr<answer> take(void* userdata) {
    const std::unique_ptr<std::shared_ptr<answer>> held(
        static_cast<std::shared_ptr<answer>*>(userdata));
    return *held;
  }
};

// Text of the library as one line, cut to the length of an error's message.
std::string line_of(string_view text);

struct runtime {
  const library& wgpu;
  instance_handle instance = nullptr;
  mutable std::recursive_mutex lock;

  explicit runtime(const library& calls) noexcept : wgpu(calls) {}
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  bitnet_status start(const sdk::reporter& report);
  // Waits for the answer; the lock is held only while events are processed. False after 60 s.
  bool wait(const answer& to) const;
};

// A device of the library with its one queue, and the errors that it reported.
struct connection {
  const runtime& on;
  device_handle device = nullptr;
  queue_handle queue = nullptr;
  std::string name;  // for messages

  explicit connection(const runtime& of) : on(of), said_(made_for_ever()) {}
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  const library& wgpu() const noexcept { return on.wgpu; }
  bitnet_status open(adapter_handle adapter, const limits& wanted, bool subgroups, bool timestamps,
                     const sdk::reporter& report);
  // BITNET_DEVICE_LOST once the library reported it, or the first error of a call that returns no
  // status.
  bitnet_status health(const sdk::reporter& report) const;

  // Calls make() and turns WebGPU errors of its calls into a status. The caller holds the lock.
  template <class Make>
  bitnet_status checked(const char* call, Make&& make, const sdk::reporter& report) const {
    open_scopes();
    make();
    return close_scopes(call, report);
  }

 private:
  // The library may call back at any time, so this is never freed.
  struct said {
    std::mutex lock;
    bool lost = false;
    uint32_t type = error_none;
    std::string message;  // of the first error
  };
  static said& made_for_ever();
  static void lose(const device_handle*, uint32_t, string_view, void*, void*);
  static void complain(const device_handle*, uint32_t, string_view, void*, void*);
  void open_scopes() const;
  bitnet_status close_scopes(const char* call, const sdk::reporter& report) const;
  bitnet_status fail(const char* call, uint32_t type, const std::string& message,
                     const sdk::reporter& report) const;

  said& said_;
};

}  // namespace bitnet::webgpu
