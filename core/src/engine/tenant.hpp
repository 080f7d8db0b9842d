#pragma once
// A user of an engine that can move to another engine of the same model: a session or a scheduler.

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "engine/engine.hpp"
#include "engine/limits.hpp"

namespace bitnet::generate {
class row_listener;
}

namespace bitnet::engine {

// The way in which a tenant moves its computed keys and values to another engine.
enum class moving : uint8_t {
  migrate,    // copies keys and values; what cannot be copied is computed again
  recompute,  // computes its tokens again
};

class tenant {
 public:
  tenant() = default;
  tenant(const tenant&) = delete;
  tenant& operator=(const tenant&) = delete;
  virtual ~tenant() = default;

  // The engine that the tenant uses, or to which it will move next. Any thread.
  [[nodiscard]] virtual std::shared_ptr<engine> headed_for() const = 0;
  // Prepares a move, which takes memory for a second set of KV blocks. The tenant moves before its
  // next step. A later offer replaces one that was not taken. Any thread.
  virtual result<void> offer(std::shared_ptr<engine> to, moving how, const std::string& why) = 0;

  // The options of its sequences, with their context; nullopt if its rows are not logits. Any
  // thread.
  [[nodiscard]] virtual std::optional<session_options> sequences() const = 0;
  // From the step after next at the latest, its rows of logits are offered to `l`. False: another
  // listener has them already. Any thread.
  virtual bool lend_rows(const std::shared_ptr<generate::row_listener>& l) = 0;
  // Ends lend_rows(), if `l` still has the rows. Any thread.
  virtual void take_back_rows(const std::shared_ptr<generate::row_listener>& l) = 0;
};

}  // namespace bitnet::engine
