#pragma once
// Devices that were lost, and what follows from it: where their sessions go on, and what new ones
// take.
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

  // The owner of backends and models, as far as it is needed here.
  struct keeper {
    // The first device of a request that is none of `without`, loaded.
    std::function<result<select::choice>(const select::request&, const names& without)> choose;
    // What new sessions and models take from now on.
    std::function<void(const select::choice&)> settle;
    std::function<void(uint32_t level, const std::string& text)> log;  // BITNET_LOG_*
  };

  // Where a session of `engines` whose device is lost continues, by its own request; the device and
  // what is lost with it are not chosen again. New sessions follow `general`, the runtime's own
  // request.
  // Errors    that of the loss, with why there is nowhere else.
  result<engine_ptr> find_replacement(model_engines& engines, const engine_ptr& lost,
                                      const failure& why, const select::request& wished,
                                      const select::request& general, const keeper& by);
  [[nodiscard]] names all() const;
  // It was chosen again, and it works: "mine:0".
  void works_again(const std::string& device);
  // Another copy of this backend serves. A poisoned context stays: it is the process's.
  void was_replaced(const std::string& backend);

 private:
  names add(const engine& lost, const failure& why);

  mutable std::mutex turn_;
  names names_;  // devices, and backends whose context is poisoned: "mine:0", "mine"
};

}  // namespace bitnet::engine
