#pragma once
// A user of an engine that can move to another engine of the same model: a session or a scheduler.

#include <memory>
#include <string>

#include "base/result.hpp"
#include "engine/engine.hpp"

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
};

}  // namespace bitnet::engine
