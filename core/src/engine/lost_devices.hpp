#pragma once
// Lost devices: where their sessions continue, and which devices new sessions take.
//
// Threads any.

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "base/result.hpp"
#include "engine/model_engines.hpp"
#include "select/selection.hpp"

namespace bitnet::engine {

class lost_devices {
 public:
  using names = std::set<std::string>;

  // Access to the backends and models of the runtime.
  struct runtime_access {
    // Chooses and loads the first device of a request that is not in `without`.
    std::function<result<select::choice>(const select::request&, const names& without)> choose;
    // Notes the choice that new sessions and models take from now on.
    std::function<void(const select::choice&)> settle;
    std::function<void(uint32_t level, const std::string& text)> log;  // BITNET_LOG_*
  };

  // Finds an engine for a session of `engines` whose device is lost, by its own request. The lost
  // device, and what is lost with it, are not chosen again. New sessions follow `general`, the
  // runtime's own request.
  // Errors    that of the loss, with the reasons why no other engine was found.
  result<engine_ptr> find_replacement(model_engines& engines, const engine_ptr& lost,
                                      const failure& why, const select::request& wished,
                                      const select::request& general, const runtime_access& by);
  [[nodiscard]] names all() const;
  // Notes that a device that was chosen again works: "mine:0".
  void works_again(const std::string& device);
  // Another copy of this backend serves. A poisoned context stays lost: it is the process's.
  void was_replaced(const std::string& backend);

 private:
  names add(const engine& lost, const failure& why);

  mutable std::mutex mutex_;
  names names_;  // devices, and backends whose context is poisoned: "mine:0", "mine"
};

}  // namespace bitnet::engine
