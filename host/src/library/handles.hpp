#pragma once
// C++ owners of libbitnet's handles, its text-out calls as strings, and its errors as failures.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"
#include "bitnet/bitnet.h"
#include "process/orderly_end.hpp"

namespace bitnet::host {

template <auto Close>
struct closer {
  template <class T>
  void operator()(T* handle) const noexcept {
    Close(handle);
  }
};
// The same for handles whose closing runs plugin code, which may hang.
template <auto Close>
struct guarded_closer {
  template <class T>
  void operator()(T* handle) const noexcept {
    const orderly_end::closing guarded(what_is_closed(handle));
    Close(handle);
  }
  static const char* what_is_closed(const bitnet_runtime*) { return "the backends"; }
  static const char* what_is_closed(const bitnet_model*) { return "the model"; }
  static const char* what_is_closed(const bitnet_session*) { return "the session"; }
  static const char* what_is_closed(const bitnet_scheduler*) { return "the scheduler"; }
  static const char* what_is_closed(const bitnet_shadow*) { return "the shadow"; }
};

using runtime_handle = std::unique_ptr<bitnet_runtime, guarded_closer<bitnet_runtime_close>>;
using model_handle = std::unique_ptr<bitnet_model, guarded_closer<bitnet_model_close>>;
using session_handle = std::unique_ptr<bitnet_session, guarded_closer<bitnet_session_close>>;
using scheduler_handle = std::unique_ptr<bitnet_scheduler, guarded_closer<bitnet_scheduler_close>>;
using shadow_handle = std::unique_ptr<bitnet_shadow, guarded_closer<bitnet_shadow_close>>;
using chat_handle = std::unique_ptr<bitnet_chat, closer<bitnet_chat_close>>;
using answer_handle = std::unique_ptr<bitnet_answer, closer<bitnet_answer_close>>;
using request_handle = std::unique_ptr<bitnet_request, closer<bitnet_request_close>>;

struct library_error : bitnet_error {
  library_error() : bitnet_error{} { struct_size = sizeof(bitnet_error); }
};

// The library's message, or the status name if it gave none.
[[nodiscard]] std::unexpected<failure> failed(bitnet_status status, const bitnet_error& err,
                                              stage doing);

inline bitnet_str borrowed(std::string_view text) {
  return {text.data(), text.size()};
}

// Calls a function of the form (out, capacity, needed) for the size, then for the text.
template <class Call>
[[nodiscard]] bitnet_status fetch(Call call, std::string& text) {
  uint64_t needed = 0;
  bitnet_status status = call(nullptr, uint64_t{0}, &needed);
  // The size may grow between the calls: other threads add rows to reports.
  while (needed > text.size() && (status == BITNET_OK || status == BITNET_INVALID_ARGUMENT)) {
    text.resize(needed);
    status = call(text.data(), uint64_t{text.size()}, &needed);
  }
  if (status == BITNET_OK) text.resize(needed);
  return status;
}

// Callback for calls that return a report; `user` is the std::string that receives it.
inline void keep_text(void* user, bitnet_str text) {
  static_cast<std::string*>(user)->assign(text.data, text.size);
}

using token_list = std::vector<bitnet_token>;

[[nodiscard]] result<token_list> tokenize(const bitnet_model* model, std::string_view text,
                                          uint32_t flags);
[[nodiscard]] result<std::string> detokenize(const bitnet_model* model, const token_list& ids,
                                             uint32_t flags);
[[nodiscard]] bitnet_model_info describe(const bitnet_model* model);

}  // namespace bitnet::host
