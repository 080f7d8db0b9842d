#pragma once
// Calls of a backend's slots, and what can be wrong with them.

#include <expected>
#include <memory>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "bitnet/abi/answers.h"
#include "plugin/loading/foreign_error.hpp"
#include "plugin/loading/running_call.hpp"

namespace bitnet::compute {

// A call that failed, with what the plugin said. BITNET_OK: it succeeded with an answer that
// bitnet/abi/answers.h calls wrong.
struct trouble {
  std::string slot;
  bitnet_status status = BITNET_OK;
  std::string reason;
  origin from{};
};

template <class T>
using attempt = std::expected<T, trouble>;

// A handle that a plugin gave out, with the slot that takes it back.
template <class Object>
using handle = std::unique_ptr<Object, void (*)(Object*)>;

// Makes the call: it gets the error to fill. What it costs when all is well is the call.
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

// `wrong` is what answers.h says of the answer of `slot`, NULL if nothing is.
inline attempt<void> sane(const char* slot, const char* wrong) {
  if (wrong == nullptr) return {};
  return std::unexpected(trouble{slot, BITNET_OK, wrong});
}

// A call that gives a handle.
template <class Object, class Make>
attempt<handle<Object>> take(const char* slot, void (*destroy)(Object*), const Make& make) {
  Object* raw = nullptr;
  if (auto ok = call(slot, [&](bitnet_error* err) { return make(&raw, err); }); !ok)
    return std::unexpected(std::move(ok.error()));
  handle<Object> out(raw, destroy);
  if (auto ok = sane(slot, bitnet_wrong_handle(raw)); !ok)
    return std::unexpected(std::move(ok.error()));
  return out;
}

// For people: what was being done, and why it did not work.
[[nodiscard]] failure in_words(trouble t, const std::string& doing);

template <class T>
[[nodiscard]] result<T> told(attempt<T>&& made, const std::string& doing) {
  if (!made) return std::unexpected(in_words(std::move(made.error()), doing));
  if constexpr (std::is_void_v<T>)
    return {};
  else
    return std::move(*made);
}

}  // namespace bitnet::compute
