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

// How it takes what it has computed to another engine.
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

  // Where it is, or goes next. Any thread.
  [[nodiscard]] virtual std::shared_ptr<engine> headed_for() const = 0;
  // Gets ready to move, at the price of a second set of KV blocks; it moves before its next step. A
  // later offer replaces one that was not taken. Any thread.
  virtual result<void> offer(std::shared_ptr<engine> to, moving how, const std::string& why) = 0;

  // How its sequences are computed, with the context that they have; nullopt: it has no rows of
  // logits. Any thread.
  [[nodiscard]] virtual std::optional<session_options> sequences() const = 0;
  // Its rows of logits are offered to `l`, before its step after next at the latest. False: others
  // get them already. Any thread.
  virtual bool lend_rows(const std::shared_ptr<generate::row_listener>& l) = 0;
  // They are not any more, if they still are. Any thread.
  virtual void take_back_rows(const std::shared_ptr<generate::row_listener>& l) = 0;
};

}  // namespace bitnet::engine
