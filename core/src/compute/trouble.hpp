#pragma once
// Calls the slots of a backend and checks their answers.

#include <expected>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/result.hpp"
#include "bitnet/abi/answers.h"
#include "plugin/loading/foreign_error.hpp"
#include "plugin/loading/running_call.hpp"

namespace bitnet::compute {

// A failed call with the plugin's message. BITNET_OK: the call succeeded, but bitnet/abi/answers.h
// calls the answer wrong.
struct trouble {
  std::string slot;
  bitnet_status status = BITNET_OK;
  std::string reason;
  origin from{};
};

template <class T>
using attempt = std::expected<T, trouble>;

// Registry of the handles that plugins have given out: a handle that is given twice is destroyed
// only once. Thread-safe.
class given_out {
 public:
  // Returns false if the handle is already out, for the same `destroy`.
  [[nodiscard]] static bool add(const void* object, void (*destroy)());
  static void remove(const void* object, void (*destroy)()) noexcept;
};

template <class Object>
class give_back {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a slot is all that it takes
  give_back(void (*destroy)(Object*)) noexcept : destroy_(destroy) {}
  void operator()(Object* object) const {
    given_out::remove(object, key(destroy_));
    destroy_(object);
  }
  // Key of a kind of objects: objects of two kinds may have the same address.
  static auto key(void (*destroy)(Object*)) { return reinterpret_cast<void (*)()>(destroy); }

 private:
  void (*destroy_)(Object*);
};

// A handle that a plugin gave out, with the slot that takes it back.
template <class Object>
using handle = std::unique_ptr<Object, give_back<Object>>;

// Calls the slot with an error to fill. The good path costs no more than the call.
template <class Call>
attempt<void> call(const char* slot, const Call& what) {
  bitnet_error err = plugin::blank_error();
  const plugin::running_call now(slot);
  const bitnet_status status = what(&err);
  if (status == BITNET_OK) return {};
  std::string reason = plugin::printable_array(err.message);
  if (reason.empty()) reason = fmt::format("it failed with status {} and gave no reason", status);
  origin from = plugin::origin_of(err);
  if (from.code != 0) reason += fmt::format(" ({})", plugin::in_words(from));
  return std::unexpected(trouble{slot, status, std::move(reason), std::move(from)});
}

// `wrong`: the complaint of answers.h about the answer of `slot`; NULL: none.
inline attempt<void> sane(const char* slot, const char* wrong) {
  if (wrong == nullptr) return {};
  return std::unexpected(trouble{slot, BITNET_OK, wrong});
}

// Calls a slot that gives a handle.
template <class Object, class Make>
attempt<handle<Object>> take(const char* slot, void (*destroy)(Object*), const Make& make) {
  Object* raw = nullptr;
  if (auto ok = call(slot, [&](bitnet_error* err) { return make(&raw, err); }); !ok)
    return std::unexpected(std::move(ok.error()));
  if (auto ok = sane(slot, bitnet_wrong_handle(raw)); !ok)
    return std::unexpected(std::move(ok.error()));
  handle<Object> out(raw, destroy);
  // A device may be the same object each time it is opened.
  if constexpr (!std::is_same_v<Object, bitnet_device>)
    if (!given_out::add(raw, give_back<Object>::key(destroy))) {
      (void)out.release();  // the caller that got it before gives it back
      return std::unexpected(trouble{slot, BITNET_OK, "gives a handle that it has given before"});
    }
  return out;
}

// Message for users: what was being done, and why it failed.
[[nodiscard]] failure in_words(trouble t, const std::string& doing);

template <class T>
[[nodiscard]] result<T> as_result(attempt<T>&& made, const std::string& doing) {
  if (!made) return std::unexpected(in_words(std::move(made.error()), doing));
  if constexpr (std::is_void_v<T>)
    return {};
  else
    return std::move(*made);
}

}  // namespace bitnet::compute
