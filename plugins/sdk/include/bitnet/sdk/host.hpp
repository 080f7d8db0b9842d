// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// The host's services, as C++. Valid from the entry call until `close` has returned.

#include <string_view>
#include <type_traits>

#include "bitnet/abi/host.h"
#include "bitnet/sdk/budget.hpp"

namespace bitnet::sdk {

inline bitnet_str to_str(std::string_view s) noexcept {
  return {s.data(), s.size()};
}
inline std::string_view to_view(bitnet_str s) noexcept {
  return s.data ? std::string_view(s.data, s.size) : std::string_view();
}

class host {
 public:
  explicit host(const bitnet_host_v0* services) noexcept : services_(services) {}
  // The same services, for a device that may hold at most `lent`.
  host(const host& other, budget& lent) noexcept : services_(other.services_), budget_(&lent) {}

  // False if a service that the contract requires is missing.
  static bool complete(const bitnet_host_v0* services) noexcept {
    return services && BITNET_HAS_FIELD(services, bitnet_host_v0, now_ns) && services->log &&
           services->parallel_width && services->parallel_run && services->cancelled &&
           services->now_ns;
  }

  void log(uint32_t level, std::string_view component, std::string_view message) const noexcept {
    services_->log(services_->self, level, to_str(component), to_str(message));
  }
  uint32_t width() const noexcept {
    const uint32_t width = services_->parallel_width(services_->self);
    return width == 0 ? 1 : width;
  }
  bool cancelled(uint64_t token) const noexcept {
    return token != 0 && services_->cancelled(services_->self, token) != 0;
  }
  uint64_t now_ns() const noexcept { return services_->now_ns(services_->self); }
  budget* lent() const noexcept { return budget_; }  // nullptr: no bound

  // Runs work(worker, n_workers) on n_workers threads concurrently; the caller is worker 0. The
  // host also runs a single worker, because it pins workers to CPUs.
  template <class Work>
  bitnet_status parallel(uint32_t n_workers, Work& work) const noexcept {
    static_assert(std::is_nothrow_invocable_v<Work&, uint32_t, uint32_t>);
    return services_->parallel_run(
        services_->self, n_workers,
        [](void* arg, uint32_t worker, uint32_t n) { (*static_cast<Work*>(arg))(worker, n); },
        &work);
  }

  // Cuts [0, count) into one range per worker: work(first, last).
  template <class Work>
  bitnet_status parallel_for(uint64_t count, Work&& work) const noexcept {
    auto share = [&](uint32_t worker, uint32_t n) noexcept {
      work(count * worker / n, count * (worker + 1) / n);
    };
    return parallel(width(), share);
  }

 private:
  const bitnet_host_v0* services_;
  budget* budget_ = nullptr;
};

}  // namespace bitnet::sdk
