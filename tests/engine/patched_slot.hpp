#pragma once
// A slot of a loaded backend that does what a test says, for as long as this lives: how a device of
// the tests' own fails, hangs, or is watched.
//
//   patched<&bitnet_backend_v0::queue_wait> hangs(backend, [](auto... given) { ... });
//   hangs.sound(queue, value, timeout, err);  // what the slot did before
//
// Threads  one at a time; of each slot, one object at a time.

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <utility>

#include "plugin/loading/backend.hpp"

namespace bitnet::test {

template <auto Slot>
class patched;

template <class Answer, class... Given, Answer (*bitnet_backend_v0::*Slot)(Given...)>
class patched<Slot> {
 public:
  using function = std::function<Answer(Given...)>;

  patched(const plugin::backend& of, function instead)
      : table_(const_cast<bitnet_backend_v0&>(of.table())), before_(table_.*Slot) {
    if (now()) throw std::logic_error("the slot is patched by another object");
    now() = std::move(instead);
    table_.*Slot = [](Given... given) -> Answer { return now()(given...); };
  }
  ~patched() {
    table_.*Slot = before_;
    now() = {};
  }
  patched(const patched&) = delete;
  patched& operator=(const patched&) = delete;

  Answer sound(Given... given) const { return before_(given...); }

 private:
  static function& now() {
    static function f;
    return f;
  }
  bitnet_backend_v0& table_;
  Answer (*const before_)(Given...);
};

// Fails a call as a backend does.
inline bitnet_status fail_with(bitnet_error* err, bitnet_status status, const char* message) {
  if (err == nullptr) return status;
  err->code = status;
  std::snprintf(err->message, sizeof err->message, "%s", message);
  return status;
}

}  // namespace bitnet::test
