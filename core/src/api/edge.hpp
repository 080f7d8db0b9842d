#pragma once
// The edge between C++ and the C API: it catches all exceptions, and turns failures into
// bitnet_error.

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "bitnet/bitnet.h"
#include "system/limits.hpp"
#include "text/printable.hpp"

namespace bitnet::api {

// Copies text into a fixed field, cut at a UTF-8 boundary, always terminated.
template <std::size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  std::size_t n = std::min(text.size(), N - 1);
  while (n > 0 && n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0U) == 0x80U) --n;
  std::fill(text.copy(to, n) + to, to + N, '\0');
}

// The BITNET_ERROR_* of a status, as bitnet/abi/base.h lists them. 0 for a plugin author's own
// status, whose meaning only the plugin knows.
constexpr uint32_t flags_of(bitnet_status status) noexcept {
  switch (status) {
    case BITNET_OUT_OF_MEMORY:
    case BITNET_OUT_OF_DEVICE_MEMORY:
      return BITNET_ERROR_RETRYABLE | BITNET_ERROR_USER_FIXABLE;
    case BITNET_DEVICE_LOST:
    case BITNET_TIMEOUT:
    case BITNET_BUSY:
      return BITNET_ERROR_RETRYABLE;
    case BITNET_UNAVAILABLE:
    case BITNET_INCOMPATIBLE:
    case BITNET_BAD_DATA:
    case BITNET_NOT_FOUND:
    case BITNET_REJECTED:
    case BITNET_CONTEXT_FULL:
    case BITNET_IO:
    case BITNET_FORBIDDEN:
      return BITNET_ERROR_USER_FIXABLE;
    default:
      return 0;
  }
}

// Allocates nothing, so it works when memory is exhausted.
inline bitnet_status report_plainly(bitnet_error* err, const char* where, bitnet_status status,
                                    const char* message) noexcept {
  if (err == nullptr || err->struct_size < sizeof(bitnet_error)) return status;
  *err = {};
  err->struct_size = sizeof *err;
  err->code = status;
  err->flags = flags_of(status);
  copy_text(err->where, where);
  copy_text(err->message, message);
  return status;
}

inline bitnet_status report_out_of_memory(bitnet_error* err, const char* where) noexcept {
  char message[sizeof err->message];
  limits::out_of_memory(message, sizeof message);
  return report_plainly(err, where, BITNET_OUT_OF_MEMORY, message);
}

inline bitnet_status report(bitnet_error* err, const char* where, const failure& why) {
  if (err != nullptr && err->struct_size >= sizeof(bitnet_error)) {
    *err = {};
    err->struct_size = sizeof *err;
    err->code = why.status;
    err->flags = flags_of(why.status) | why.from.flags;
    copy_text(err->where, where);
    std::string line = why.message;
    std::replace(line.begin(), line.end(), '\n', ' ');
    copy_text(err->message, text::printable(line));
    err->native_code = why.from.code;
    copy_text(err->domain, text::printable(why.from.domain));
  }
  return why.status;
}

// Whether this thread runs a log callback of the program. Callbacks run under locks.
inline thread_local bool in_log_callback = false;

// Runs body (which returns result<void>) for the C function `where`.
template <class Body>
bitnet_status guarded(bitnet_error* err, const char* where, Body&& body) noexcept {
  try {
    if (in_log_callback)
      return report(err, where,
                    {BITNET_INVALID_ARGUMENT,
                     "called from a log callback, which must not call the library; note what to "
                     "do, and do it when the call that logs has returned"});
    result<void> r = body();
    return r ? BITNET_OK : report(err, where, r.error());
  } catch (const std::bad_alloc&) {
    return report_out_of_memory(err, where);
  } catch (const std::exception& e) {
    return report_plainly(err, where, BITNET_INTERNAL, e.what());
  } catch (...) {
    return report_plainly(err, where, BITNET_INTERNAL,
                          "an exception of an unknown type, which is a defect of libbitnet; report "
                          "it with the log");
  }
}

// Returns a text by the (out, capacity, needed) rule of bitnet.h.
inline result<void> give_text(std::string_view text, char* out, uint64_t capacity,
                              uint64_t* needed) {
  if (needed != nullptr) *needed = text.size();
  if (out == nullptr && capacity == 0) return {};
  if (out == nullptr || capacity < text.size())
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("room for {} bytes, but the text has {}", capacity, text.size()));
  std::memcpy(out, text.data(), text.size());
  return {};
}

// The same for a text that changes between calls, such as a report with the free memory. If a
// thread first asks for the size and then for a text of that size, it gets the text that was
// measured. `make` returns result<std::string>.
template <class Make>
result<void> give_changing_text(const std::string& of, char* out, uint64_t capacity,
                                uint64_t* needed, const Make& make) {
  struct measured {
    std::string of, text;
  };
  thread_local measured last;
  const bool asks_size = out == nullptr && capacity == 0;
  const measured before = std::exchange(last, {});
  if (!asks_size && before.of == of && before.text.size() == capacity)
    return give_text(before.text, out, capacity, needed);
  auto text = make();
  if (!text) return std::unexpected(std::move(text.error()));
  if (asks_size) last = {of, *text};
  return give_text(*text, out, capacity, needed);
}

inline std::string_view view(bitnet_str text) {
  return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
}

inline result<void> missing(const char* what) {
  return fail(BITNET_INVALID_ARGUMENT, fmt::format("{} is NULL; give a valid pointer", what));
}

// Checks a list of an option struct: "logit_bias is NULL, with a count of 3".
template <class Element>
result<void> listed(const Element* list, uint64_t n, const char* what) {
  if (list != nullptr || n == 0) return {};
  return fail(
      BITNET_INVALID_ARGUMENT,
      fmt::format("{} is NULL, with a count of {}; give the list, or a count of 0", what, n));
}

// True if all bytes from `known` on, which a newer caller may have set, are 0.
inline bool is_known(const void* thing, std::size_t size, std::size_t known) {
  const auto* bytes = static_cast<const unsigned char*>(thing);
  return size <= known || std::all_of(bytes + known, bytes + size, [](auto b) { return b == 0; });
}

inline std::unexpected<failure> newer(const char* what, std::size_t size, std::size_t known) {
  return fail(BITNET_UNSUPPORTED,
              fmt::format("{} of {} bytes: something is set behind the {} that bitnet {} knows; "
                          "leave it 0, or use a newer library",
                          what, size, known, BITNET_VERSION));
}

// Detects uninitialised structs: no version of any struct is this large.
constexpr uint32_t most_struct_bytes = 4096;

// Fills all bytes of a caller's struct with defaults; bytes that this library does not know become
// 0.
template <class Options>
void give_defaults(Options ours, Options* to, uint32_t size) {
  if (to == nullptr || size < sizeof size) return;
  ours.struct_size = size;
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &ours, std::min<std::size_t>(size, sizeof ours));
}

// Reserved members must be 0, so that a later version can use them. Structs use these names;
// tests/api/reserved.cmake compares the list with bitnet.h.
template <class Options>
result<void> check_reserved(const Options& o, const char* what) {
  const char* set = nullptr;
  if constexpr (requires { o.reserved_0; })
    if (o.reserved_0 != 0) set = "reserved_0";
  if constexpr (requires { o.reserved_1; })
    if (o.reserved_1 != 0) set = "reserved_1";
  if constexpr (requires { o.reserved_2; })
    if (o.reserved_2 != 0) set = "reserved_2";
  if constexpr (requires { o.reserved_3; })
    if (o.reserved_3 != 0) set = "reserved_3";
  if (set == nullptr) return {};
  return fail(BITNET_UNSUPPORTED,
              fmt::format("{} is set in {}, and bitnet {} has no meaning for it; leave it 0, or "
                          "use a newer library",
                          set, what, BITNET_VERSION));
}

// Reads a caller's option struct of any size; members past its end get defaults.
template <class Options>
result<Options> take_options(const Options* given, void (*defaults)(Options*, uint32_t),
                             const char* what = "the options") {
  Options out{};
  defaults(&out, sizeof out);
  if (given == nullptr) return out;
  if (given->struct_size < sizeof given->struct_size || given->struct_size > most_struct_bytes)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{} have a struct_size of {}; fill them by their _defaults call", what,
                            given->struct_size));
  if (!is_known(given, given->struct_size, sizeof out))
    return newer(what, given->struct_size, sizeof out);
  std::memcpy(static_cast<void*>(&out), given,
              std::min<std::size_t>(given->struct_size, sizeof out));
  out.struct_size = sizeof out;
  if (auto ok = check_reserved(out, what); !ok) return std::unexpected(ok.error());
  return out;
}

// Fills a caller's result struct of any size.
template <class Result>
result<void> give_result(Result ours, Result* to) {
  const uint32_t size = to->struct_size;
  if (size < sizeof size || size > most_struct_bytes)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("struct_size of the result is {}; set it to the struct's size", size));
  give_defaults(ours, to, size);
  return {};
}

// Element i of a caller's array, whose elements may be smaller or larger than ours.
template <class Element>
result<Element> element_of(const Element* list, uint64_t i, uint32_t size, uint32_t first_size,
                           const char* what) {
  const std::size_t stride = size == 0 ? first_size : size;
  if (stride < first_size || stride > most_struct_bytes)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{} of {} bytes; at least {} expected", what, stride, first_size));
  const auto* at = reinterpret_cast<const unsigned char*>(list) + i * stride;
  if (!is_known(at, stride, sizeof(Element))) return newer(what, stride, sizeof(Element));
  Element out{};
  std::memcpy(static_cast<void*>(&out), at, std::min(stride, sizeof out));
  return out;
}

}  // namespace bitnet::api
