#pragma once
// Probing as selection sees it: what is remembered, else a child.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/inspect.hpp"
#include "probe/cache.hpp"
#include "probe/prober.hpp"

namespace bitnet::probe {

struct settings {
  std::filesystem::path helper;            // bitnet-backend-probe
  std::filesystem::path cache;             // folder; "": nothing is remembered
  std::filesystem::path scratch = "/tmp";  // where children have a folder each
  uint32_t wait_ms = 3000;           // that a selection waits for slow ones when another would do
  bool fresh = false;                // ask again, whatever is remembered
  uint32_t most_children = 4;        // at the same time
  uint32_t most_stage_ms = 600'000;  // cuts every deadline

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
  uint32_t device_class = 0;           // BITNET_DEVICE_*, as the manifest says
  std::vector<std::string> variables;  // that its manifest declares
  std::vector<std::pair<std::string, std::string>> params;
};

class service {
 public:
  explicit service(settings s);

  // What the cache knows and is still worth: nothing, a good answer, a fault that has not expired,
  // or a quarantine. Notes are for the log: a damaged file, for instance.
  [[nodiscard]] std::optional<finding> recall(const subject& s, std::vector<std::string>& notes);
  [[nodiscard]] ticket start(const subject& s);
  [[nodiscard]] std::optional<finding> take(ticket t) { return prober_.take(t); }
  [[nodiscard]] finding peek(ticket t) const { return prober_.peek(t); }
  // Keeps what take() brought. May put it under quarantine.
  void remember(const subject& s, finding& f);
  // What was remembered proved wrong.
  void forget(const subject& s);
  bool wait(const std::vector<ticket>& all, std::chrono::steady_clock::time_point end) const {
    return prober_.wait(all, end);
  }
  void wait_for_one(const std::vector<ticket>& of) const { prober_.wait_for_one(of); }
  [[nodiscard]] const settings& choices() const { return settings_; }

 private:
  settings settings_;
  prober prober_;
};

}  // namespace bitnet::probe
