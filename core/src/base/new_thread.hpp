#pragma once
// A thread, or the reason why the system makes none.

#include <cerrno>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/result.hpp"

namespace bitnet {

// What `error` of a call that starts a thread or a process means here, with the limits that can be
// its cause. `root` has proc and sys in it.
[[nodiscard]] std::string shortage_text(int error, const std::filesystem::path& root = "/");
// The same of a thread: BITNET_OUT_OF_MEMORY.
[[nodiscard]] failure thread_shortage(int error, const std::filesystem::path& root = "/");

template <class Work>
[[nodiscard]] result<std::jthread> new_thread(Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error& e) {
    return std::unexpected(thread_shortage(e.code().value()));
  } catch (const std::bad_alloc&) {
    return std::unexpected(thread_shortage(ENOMEM));
  }
}

}  // namespace bitnet
