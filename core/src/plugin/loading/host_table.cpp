#include "plugin/loading/host_table.hpp"

#include <algorithm>

#include "plugin/loading/kept_state.hpp"

namespace bitnet::plugin {
namespace {

constexpr uint64_t max_log_bytes = 4096;

host_services& services(void* self) {
  return *static_cast<host_services*>(self);
}

std::string_view view(bitnet_str text) {
  return text.data == nullptr ? std::string_view()
                              : std::string_view(text.data, std::min(text.size, max_log_bytes));
}

void log(void* self, uint32_t level, bitnet_str component, bitnet_str message) noexcept try {
  services(self).log(std::min(level, BITNET_LOG_DEBUG), view(component), view(message));
} catch (...) {  // NOLINT(bugprone-empty-catch): a message is lost and cannot be reported
}

uint32_t parallel_width(void* self) noexcept try {
  return std::max(services(self).parallel_width(), 1U);
} catch (...) {
  return 1;
}

bitnet_status parallel_run(void* self, uint32_t n_workers, bitnet_task task, void* arg) noexcept
    try {
  if (task == nullptr) return BITNET_INVALID_ARGUMENT;
  kept_task kept{task, arg};
  return services(self).parallel_run(n_workers, run_kept, &kept);
} catch (...) {
  return BITNET_INTERNAL;
}

uint32_t cancelled(void* self, uint64_t token) noexcept try {
  return services(self).cancelled(token) ? 1 : 0;
} catch (...) {
  return 0;
}

uint64_t now_ns(void* self) noexcept try { return services(self).now_ns(); } catch (...) {
  return 0;
}

}  // namespace

bitnet_host_v0 make_host_table(host_services& services) {
  bitnet_host_v0 out{};
  out.struct_size = sizeof out;
  out.self = &services;
  out.log = log;
  out.parallel_width = parallel_width;
  out.parallel_run = parallel_run;
  out.cancelled = cancelled;
  out.now_ns = now_ns;
  return out;
}

}  // namespace bitnet::plugin
