#include "session/lost_devices.hpp"

#include <fmt/core.h>

#include <utility>

namespace bitnet::session {

lost_devices::names lost_devices::add(const engine& lost, const failure& why) {
  const std::lock_guard lock(turn_);
  // A poisoned context is the process's: no other device of the backend works either.
  names_.insert(why.status == BITNET_CONTEXT_POISONED ? lost.backend_name()
                                                      : lost.choice().device_name());
  return names_;
}

result<engine_ptr> lost_devices::find_refuge(model_engines& engines, const engine_ptr& lost,
                                             const failure& why, const select::request& wished,
                                             const select::request& general, const keeper& by) {
  const std::string device = lost->choice().device_name();
  engines.forget(*lost);
  const names without = add(*lost, why);
  auto other = by.choose(wished, without);
  if (!other) {
    by.log(BITNET_LOG_ERROR, fmt::format("{} is lost: {}", device, why.message));
    return std::unexpected(
        failure{why.status, fmt::format("{}; {}", why.message, other.error().message), why.from});
  }
  auto refuge = engines.on(*other);
  if (!refuge) return refuge;
  by.log(BITNET_LOG_WARN, fmt::format("{} is lost ({}): a session goes on with {}", device,
                                      why.message, other->device_name()));
  if (engines.current() == lost)
    if (auto next = by.choose(general, without)) {
      if (auto e = engines.on(*next)) engines.set_current(*e);
      by.settle(*next);
    }
  return refuge;
}

void lost_devices::works_again(const std::string& device) {
  const std::lock_guard lock(turn_);
  names_.erase(device);
}

void lost_devices::was_replaced(const std::string& backend) {
  const std::lock_guard lock(turn_);
  std::erase_if(names_, [&](const std::string& one) { return one.starts_with(backend + ":"); });
}

}  // namespace bitnet::session
