#pragma once
// The smallest services for a backend that a test loads by itself, and how it ends without what it
// cannot do without.

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "plugin/loading/backend.hpp"

namespace bitnet::test {

struct one_thread final : plugin::host_services {
  void log(uint32_t, std::string_view, std::string_view) override {}
  uint32_t parallel_width() override { return 1; }
  bitnet_status parallel_run(uint32_t, bitnet_task task, void* arg) override {
    task(arg, 0, 1);
    return BITNET_OK;
  }
  bool cancelled(uint64_t) override { return false; }
  uint64_t now_ns() override {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  std::vector<std::pair<std::string, std::string>> params(std::string_view) override {
    return given;
  }

  std::vector<std::pair<std::string, std::string>> given;  // settings of what is loaded next
};

// Throws what went wrong.
template <class T>
T need(result<T> made) {
  if (!made) throw std::runtime_error(made.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*made);
}

}  // namespace bitnet::test
