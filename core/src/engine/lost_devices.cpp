#include "engine/lost_devices.hpp"

#include <fmt/core.h>

#include <utility>

namespace bitnet::engine {

lost_devices::names lost_devices::add(const engine& lost, const failure& why) {
  const std::lock_guard lock(mutex_);
  // A poisoned context belongs to the process: no other device of the backend works either.
  const part& which = lost.failed_part();
  names_.insert(why.status == BITNET_CONTEXT_POISONED ? which.backend_name()
                                                      : which.choice().device_name());
  return names_;
}

result<engine_ptr> lost_devices::find_replacement(model_engines& engines, const engine_ptr& lost,
                                                  const failure& why, const select::request& wished,
                                                  const select::request& general,
                                                  const runtime_access& by) {
  const std::string device = lost->failed_part().choice().device_name();
  engines.forget(*lost);
  names without = add(*lost, why);
  std::string reasons;  // why other devices could not take the model
  const auto next_replacement = [&]() -> result<engine_ptr> {
    for (;;) {
      auto other = by.choose(wished, without);
      if (!other) return std::unexpected(std::move(other.error()));
      auto taken = engines.on(*other);
      if (taken) return taken;
      reasons += fmt::format("; {}: {}", other->device_name(), taken.error().message);
      without.insert(other->device_name());
    }
  };
  auto other = next_replacement();
  if (!other) {
    by.log(BITNET_LOG_ERROR, fmt::format("{} is lost: {}", device, why.message));
    return std::unexpected(
        failure{why.status, fmt::format("{}{}; {}", why.message, reasons, other.error().message),
                why.from});
  }
  by.log(BITNET_LOG_WARN, fmt::format("{} is lost ({}): a session goes on with {}", device,
                                      why.message, (*other)->choice().device_name()));
  if (engines.current() == lost)
    if (auto next = by.choose(general, without)) {
      if (auto e = engines.on(*next)) engines.set_current(*e);
      by.settle(*next);
    }
  return other;
}

lost_devices::names lost_devices::all() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

void lost_devices::works_again(const std::string& device) {
  const std::lock_guard lock(mutex_);
  names_.erase(device);
}

void lost_devices::was_replaced(const std::string& backend) {
  const std::lock_guard lock(mutex_);
  std::erase_if(names_, [&](const std::string& one) { return one.starts_with(backend + ":"); });
}

}  // namespace bitnet::engine
