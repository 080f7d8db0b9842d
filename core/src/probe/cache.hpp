#pragma once
// Caches the answers of probes: one file per plugin build, in a folder that only its owner can
// write.
//
// File     "bitnet probe cache 1 <XXH3 of the rest, 16 hex digits>\n", then JSON.
// Worth    A good answer is a hint while the key is the same: loading the plugin compares. A fault
//          is valid for 1 minute, then twice as long each time, up to an hour. The second crash of
//          a build puts it into quarantine until the build changes or a fresh probe succeeds.
// Hostile  Any bytes are safe to read: tests/fuzz/probe/cache_entry_fuzz.cpp. Damaged files are
//          ignored. Writing is atomic, and a folder that cannot be written is no error.

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probe/outcome.hpp"

namespace bitnet::probe {

struct cache_key {
  std::string name, build_id;
  std::filesystem::path library;  // absolute
  std::string fingerprint;        // of everything that the answer depends on
};

// The content of one file.
struct cache_entry {
  std::string build_id, fingerprint;
  int64_t written_s = 0;  // since the epoch
  int64_t keep_s = 0;     // how long a fault is valid
  uint32_t strikes = 0;   // consecutive crashes of this build
  std::string content;    // hash of the file's bytes in quarantine; "" if unreadable
  outcome what;
};

constexpr int64_t first_keep_s = 60, longest_keep_s = 3600;
// Age at which answers of other builds of the same backend are deleted.
constexpr int64_t old_build_s = int64_t{30} * 24 * 3600;
constexpr uint32_t strikes_out = 2;

[[nodiscard]] std::string write_entry(const cache_entry& e);
// BN-P-MESSAGE.
[[nodiscard]] plugin::checked<cache_entry> read_entry(std::string_view entry);

class cache {
 public:
  explicit cache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  [[nodiscard]] std::optional<outcome> recall(const cache_key& key, int64_t now_s,
                                              std::vector<std::string>& notes) const;
  // `fresh`: strikes and waiting times restart.
  void remember(const cache_key& key, int64_t now_s, bool fresh, outcome& f) const;
  void forget(const cache_key& key) const;
  // The last answer for this build, even if the key has changed: a hint at the next answer.
  [[nodiscard]] std::optional<outcome> last_of(const cache_key& key) const;

  // Makes the folder. Returns false if it cannot be made or others can write to it.
  [[nodiscard]] bool prepare() const;
  // Files beside a build's answer: the lock of its probe, and the driver's cache.
  [[nodiscard]] std::filesystem::path lock_of(const cache_key& key) const;
  [[nodiscard]] std::filesystem::path drivers_of(const cache_key& key) const;
  // Locked by every process that probes.
  [[nodiscard]] std::filesystem::path common_lock() const { return folder_ / "probing.lock"; }

 private:
  [[nodiscard]] std::filesystem::path file_of(const cache_key& key, const char* extension) const;
  [[nodiscard]] std::string write(const cache_key& key, const std::string& text) const;
  void drop_old_builds(const cache_key& key, int64_t now_s) const;
  [[nodiscard]] std::optional<cache_entry> read(const cache_key& key,
                                                std::vector<std::string>& notes) const;

  std::filesystem::path folder_;
};

}  // namespace bitnet::probe
