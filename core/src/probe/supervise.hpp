#pragma once
// Runs one child that runs a plugin: starts it, reads its messages, and kills it at its deadlines.

#include <poll.h>

#include <filesystem>
#include <optional>

#include "probe/job.hpp"
#include "probe/outcome.hpp"

namespace bitnet::probe {

// Receives the progress of a probe and can end it.
class audience {
 public:
  virtual ~audience() = default;
  audience() = default;
  audience(const audience&) = delete;
  audience& operator=(const audience&) = delete;
  // A descriptor that wakes the supervision.
  [[nodiscard]] virtual pollfd wake() const = 0;
  // Called after such a wake-up and periodically. False: the answer is not wanted, kill the child.
  [[nodiscard]] virtual bool attend() = 0;
  virtual void reached(stage s) = 0;
};

// Runs the child of the job; again without a kernel that ended its test, up to eight children.
// `writable` is the only folder that the child can write to, "" for none. nullopt if the audience
// left.
[[nodiscard]] std::optional<outcome> supervise(job j, const std::filesystem::path& writable,
                                               audience& to);

}  // namespace bitnet::probe
