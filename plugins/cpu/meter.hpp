#pragma once
// What the processor is doing now, as the files of the system report: nothing is guessed, and what
// they do not report stays unknown.
//
// Bounds   at most 1 MiB of a file is read, the clocks of at most 8 CPUs are asked, and at most 64
//          sensors: [short] holds on machines with a thousand CPUs, too.
// Threads  any.

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bitnet/abi/info.h"

namespace bitnet::cpu {

// CPUs that this process may use, ascending; empty if unknown.
std::vector<uint32_t> usable_cpus();

// Whether so many bytes are worth a copy, and three times as many are free. Where they are few, no
// system call.
bool has_room_for_copies(uint64_t bytes);

class meter {
 public:
  // `root` has proc and sys in it and ends with a slash; `cpus` are those that count.
  explicit meter(std::vector<uint32_t> cpus, std::string root = "/")
      : cpus_(std::move(cpus)), root_(std::move(root)) {}

  // Fills what is known and names it in `known`. The load is that since an earlier call, so the
  // first one cannot know it.
  void read(bitnet_device_status& out);
  void add_memory(bitnet_device_status& out) const;  // of it only this

 private:
  struct ticks {  // of all the CPUs together
    uint64_t busy = 0, total = 0;
  };
  std::optional<ticks> count_ticks() const;
  void add_load(bitnet_device_status& out);
  void add_clock(bitnet_device_status& out) const;
  void add_temperature(bitnet_device_status& out) const;

  const std::vector<uint32_t> cpus_;
  const std::string root_;
  std::mutex turn_;  // guards what follows
  std::optional<ticks> before_;
  std::optional<uint32_t> last_percent_;  // no older than the least time that is measured
};

}  // namespace bitnet::cpu
