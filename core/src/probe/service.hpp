#pragma once
// Probing as selection sees it: what is remembered, else a broker.

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
  std::filesystem::path cache;             // folder; "": nothing is remembered
  std::filesystem::path scratch = "/tmp";  // where children have a folder each
  uint32_t wait_ms = 3000;  // that a selection waits for slow ones when another would do
  // That a call waits for one which has no other choice, beside what serves already.
  uint32_t longest_wait_ms = 60'000;
  bool fresh = false;                 // ask again, whatever is remembered
  uint32_t most_children = 1;         // at the same time, where nothing is remembered
  bool always_needed = false;         // each probe at our own priority, for tests on busy machines
  std::optional<bool> shows_devices;  // whether this machine does; found out if not given
  uint32_t most_stage_ms = 600'000;   // cuts every deadline

  // Those of the installation of the running libbitnet.
  [[nodiscard]] static settings usual();
};

// What is to be probed.
struct subject {
  std::string name;
  std::filesystem::path library;
  plugin::file_identity identity;
  plugin::inspection inspected;
  uint32_t timeout_ms = 0;
  uint32_t device_class = 0;       // BITNET_DEVICE_*, as the manifest says
  plugin::probe_facts depends_on;  // as the manifest says
  std::vector<std::pair<std::string, std::string>> params;
  std::string fingerprint;  // of all that the answer may depend on, once it was needed
};

class service {
 public:
  explicit service(settings s);

  // What the cache knows and is still worth: nothing, a good answer, a fault that has not expired,
  // or a quarantine. Notes are for the log: a damaged file, for instance.
  [[nodiscard]] std::optional<outcome> recall(subject& s, std::vector<std::string>& notes);

  // The result that a probe may have, as far as it is known without one.
  struct prospect {
    std::vector<uint32_t> classes;  // of devices that are to be expected
    bool known = false;  // from an earlier probe of this build, though things have changed since
    bool slow = false;   // it takes longer than a start waits, or does so right now
  };
  [[nodiscard]] prospect expect(subject& s);
  // Is there anything on this machine that could be a GPU or an accelerator?
  [[nodiscard]] bool shows_devices();

  // `needed`: nothing else would do, so that it does not give way to others.
  [[nodiscard]] ticket start(subject& s, bool needed);
  [[nodiscard]] std::optional<outcome> take(ticket t) { return prober_.take(t); }
  [[nodiscard]] outcome peek(ticket t) const { return prober_.peek(t); }
  // No caller waits for it any more.
  void calm(ticket t) { prober_.calm(t); }
  // What was remembered proved wrong.
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
