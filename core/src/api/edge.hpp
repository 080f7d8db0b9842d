#pragma once
// The edge between C++ and the C API: nothing thrown gets past it, failures become bitnet_error
// once.

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "bitnet/bitnet.h"
#include "text/printable.hpp"

namespace bitnet::api {

// Copies text into a fixed field, cut at a UTF-8 boundary, always terminated.
template <std::size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  std::size_t n = std::min(text.size(), N - 1);
  while (n > 0 && n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0U) == 0x80U) --n;
  std::fill(text.copy(to, n) + to, to + N, '\0');
}

inline bitnet_status report(bitnet_error* err, const char* where, const failure& why) {
  if (err != nullptr && err->struct_size >= sizeof(bitnet_error)) {
    *err = {};
    err->struct_size = sizeof *err;
    err->code = why.status;
    copy_text(err->where, where);
    std::string line = why.message;
    std::replace(line.begin(), line.end(), '\n', ' ');
    copy_text(err->message, text::printable(line));
  }
  return why.status;
}

// Runs body (which returns result<void>) for the C function `where`.
template <class Body>
bitnet_status guarded(bitnet_error* err, const char* where, Body&& body) noexcept {
  try {
    result<void> r = body();
    return r ? BITNET_OK : report(err, where, r.error());
  } catch (const std::bad_alloc&) {
    return report(err, where, {BITNET_OUT_OF_MEMORY, "out of memory"});
  } catch (const std::exception& e) {
    return report(err, where, {BITNET_INTERNAL, e.what()});
  } catch (...) {
    return report(err, where, {BITNET_INTERNAL, "unknown exception"});
  }
}

// The (out, capacity, needed) rule of bitnet.h.
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

inline std::string_view view(bitnet_str text) {
  return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
}

inline result<void> missing(const char* what) {
  return fail(BITNET_INVALID_ARGUMENT, fmt::format("{} is NULL", what));
}

// "logit_bias is NULL, with a count of 3", for a list of an option struct.
inline result<void> listed(const void* list, uint64_t n, const char* what) {
  if (list != nullptr || n == 0) return {};
  return fail(
      BITNET_INVALID_ARGUMENT,
      fmt::format("{} is NULL, with a count of {}; give the list, or a count of 0", what, n));
}

// Reads a caller's option struct of any size: what it does not cover keeps its default.
template <class Options>
Options take_options(const Options* given, void (*defaults)(Options*)) {
  Options out{};
  defaults(&out);
  if (given != nullptr) {
    std::memcpy(static_cast<void*>(&out), given,
                std::min<std::size_t>(given->struct_size, sizeof out));
    out.struct_size = sizeof out;
  }
  return out;
}

}  // namespace bitnet::api
