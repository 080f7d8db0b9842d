#pragma once
// Whose turn it is to probe, among all processes that remember in one folder.
//
// Files    <build>.lock: held by the only broker that probes this build; not empty while a probe of
//          it is under way, or was when it was ended. probing.lock: held by the only one that
//          probes at all, but for those that a start cannot do without. Locks end with their
//          process, and the files stay.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "plugin/trust/trust.hpp"

namespace bitnet::probe {

class turn {
 public:
  // Waits until no other process holds `file`, which is made if it is not there. nullopt: `give_up`
  // said so, which is asked now and then and may sleep, or the file cannot be used: then `problem`,
  // if there is one, gets the reason.
  [[nodiscard]] static std::optional<turn> take(const std::filesystem::path& file,
                                                const std::function<bool()>& give_up,
                                                std::string* problem = nullptr);
  // A probe of this build begins, or has ended.
  void mark(bool under_way) const;

 private:
  explicit turn(plugin::file_descriptor held) : held_(std::move(held)) {}
  plugin::file_descriptor held_;
};

// For how long a probe of this build has been under way, ms; 0 if none is.
[[nodiscard]] uint64_t under_way_ms(const std::filesystem::path& file);

}  // namespace bitnet::probe
