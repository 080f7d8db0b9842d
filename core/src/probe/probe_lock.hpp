#pragma once
// Locks that let one process at a time probe, among processes that share a cache.
//
// Files    <build>.lock: held by the broker that probes this build; not empty while a probe of it
//          runs, or if one was killed. probing.lock: held by the one broker that may probe, except
//          for probes that a start needs. Locks end with their process; the files stay.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "plugin/trust/trust.hpp"

namespace bitnet::probe {

class probe_lock {
 public:
  // Waits until no other process holds `file`, which is made if it is missing. nullopt: `give_up`,
  // which is called now and then and may sleep, returned true, or the file cannot be used; then
  // `problem`, if not null, gets the reason.
  [[nodiscard]] static std::optional<probe_lock> take(const std::filesystem::path& file,
                                                      const std::function<bool()>& give_up,
                                                      std::string* problem = nullptr);
  // Records that a probe of this build begins or has ended.
  void mark(bool under_way) const;

 private:
  explicit probe_lock(plugin::file_descriptor held) : held_(std::move(held)) {}
  plugin::file_descriptor held_;
};

// How long a probe of this build has been running, ms; 0 if none is.
[[nodiscard]] uint64_t under_way_ms(const std::filesystem::path& file);

}  // namespace bitnet::probe
