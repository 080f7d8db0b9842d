// Any bytes as the task of a probe's child: rejected with a reason, or it is the same when it is
// written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "probe/task.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using bitnet::probe::read_task;
  using bitnet::probe::write_task;
  const auto task = read_task({reinterpret_cast<const char*>(data), size});
  if (!task) {
    if (task.error().reason.empty()) std::abort();
    return 0;
  }
  const std::string text = write_task(*task);
  const auto same = read_task(text);
  if (!same || write_task(*same) != text) std::abort();
  if (same->params != task->params || same->identity != task->identity ||
      same->parent != task->parent || same->unloadable != task->unloadable)
    std::abort();
  return 0;
}
