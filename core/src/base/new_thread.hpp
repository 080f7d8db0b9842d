#pragma once
// Starts a thread, or returns why the system cannot.

#include <cerrno>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/result.hpp"

namespace bitnet {

// Text for errno `error` of a call that starts a thread or process, with the limits that can cause
// it. `root` contains proc and sys.
[[nodiscard]] std::string shortage_text(int error, const std::filesystem::path& root = "/");
// The same for a thread, as BITNET_OUT_OF_MEMORY.
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
