#pragma once
// One child that runs a plugin, from its start to its end: listened to, and ended at its deadlines.

#include <poll.h>

#include <filesystem>
#include <optional>

#include "probe/job.hpp"
#include "probe/outcome.hpp"

namespace bitnet::probe {

// Receives the progress of a probe, and may end it.
class audience {
 public:
  virtual ~audience() = default;
  audience() = default;
  audience(const audience&) = delete;
  audience& operator=(const audience&) = delete;
  // What ends the supervision's sleep.
  [[nodiscard]] virtual pollfd wake() const = 0;
  // After such a wake, and now and then. False: the answer is not wanted, the child is killed.
  [[nodiscard]] virtual bool attend() = 0;
  virtual void reached(stage s) = 0;
};

// Runs the child of the job; `writable` is the folder that it alone may write to, "" if there is
// none. Nothing if the audience left.
[[nodiscard]] std::optional<outcome> supervise(job j, const std::filesystem::path& writable,
                                               audience& to);

}  // namespace bitnet::probe
