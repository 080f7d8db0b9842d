#pragma once
// The processor's current load and sensors, as the system's files report them. Nothing is guessed:
// what the files do not report stays unknown.
//
// Bounds   it reads at most 1 MiB of a file, the clocks of at most 8 CPUs, and at most 64 sensors,
//          so [short] holds on machines with a thousand CPUs, too.
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

// True if `bytes` are worth a copy and three times as many are free. Makes no system call if
// `bytes` are few.
bool has_room_for_copies(uint64_t bytes);

class meter {
 public:
  // `root` contains proc and sys and ends with a slash; `cpus` are the CPUs to report.
  explicit meter(std::vector<uint32_t> cpus, std::string root = "/")
      : cpus_(std::move(cpus)), root_(std::move(root)) {}

  // Fills the known members and sets their bits in `known`. The load is measured since an earlier
  // call, so the first call cannot report it.
  void read(bitnet_device_status& out);
  void add_memory(bitnet_device_status& out) const;  // only the memory

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
  std::mutex mutex_;  // guards the members below
  std::optional<ticks> before_;
  std::optional<uint32_t> last_percent_;  // reused if the interval is too short to measure
};

}  // namespace bitnet::cpu
