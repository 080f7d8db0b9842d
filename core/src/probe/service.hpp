#pragma once
// Probing for selection: cached answers, else a broker.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/inspection/inspect.hpp"
#include "plugin/manifest/manifest.hpp"
#include "probe/cache.hpp"
#include "probe/prober.hpp"

namespace bitnet::probe {

struct settings {
  std::filesystem::path helper;            // bitnet-backend-probe
  std::filesystem::path cache;             // folder; "": no cache
  std::filesystem::path scratch = "/tmp";  // parent of the children's folders
  uint32_t wait_ms = 3000;  // how long a selection waits for slow backends if another one would do
  // How long a call waits for a backend if there is no other choice than the one in use.
  uint32_t longest_wait_ms = 60'000;
  bool fresh = false;                 // ignore cached answers
  uint32_t most_children = 1;         // running at the same time, without a cache
  bool always_needed = false;         // probe at normal priority, for tests on busy machines
  std::optional<bool> shows_devices;  // whether this machine has devices; nullopt: detect it
  uint32_t most_stage_ms = 600'000;   // upper limit of every deadline

  // The settings for the installation of the running libbitnet.
  [[nodiscard]] static settings usual();
};

// A backend to probe.
struct subject {
  std::string name;
  std::filesystem::path library;
  plugin::file_identity identity;
  plugin::inspection inspected;
  uint32_t timeout_ms = 0;
  uint32_t device_class = 0;       // BITNET_DEVICE_*, from the manifest
  plugin::probe_facts depends_on;  // from the manifest
  std::vector<std::pair<std::string, std::string>> params;
  std::string fingerprint;  // of everything that the answer depends on; made when needed
};

class service {
 public:
  explicit service(settings s);

  // The cached answer if it is valid: a good answer, a fault that has not expired, or a quarantine.
  // Notes for the log: a damaged file, for instance.
  [[nodiscard]] std::optional<outcome> recall(subject& s, std::vector<std::string>& notes);

  // The expected result of a probe.
  struct prospect {
    std::vector<uint32_t> classes;  // of the expected devices
    bool known = false;             // from an earlier probe of this build, which may be stale
    bool slow = false;              // it takes longer than a start waits, or is running that long
  };
  [[nodiscard]] prospect expect(subject& s);
  // Whether this machine has anything that could be a GPU or an accelerator.
  [[nodiscard]] bool shows_devices();

  // `needed`: no other backend would do, so it runs at normal priority.
  [[nodiscard]] ticket start(subject& s, bool needed);
  [[nodiscard]] std::optional<outcome> take(ticket t) { return prober_.take(t); }
  [[nodiscard]] outcome peek(ticket t) const { return prober_.peek(t); }
  // No caller waits for it any more.
  void calm(ticket t) { prober_.calm(t); }
  // Deletes the cached answer, which proved wrong.
  void forget(subject& s);
  bool wait(const std::vector<ticket>& all, std::chrono::steady_clock::time_point end) const {
    return prober_.wait(all, end);
  }
  bool wait_for_one(const std::vector<ticket>& of,
                    std::chrono::steady_clock::time_point end) const {
    return prober_.wait_for_one(of, end);
  }
  [[nodiscard]] const settings& choices() const { return settings_; }

 private:
  settings settings_;
  prober prober_;
};

}  // namespace bitnet::probe
