#pragma once
// Which backend computes, and why. The only place that decides it.
//
// The report object made here travels down to the log line, --json and the C API.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "bitnet/abi/backend.h"
#include "plugin/inspection/inspect.hpp"
#include "plugin/loading/backend.hpp"
#include "plugin/trust/policy.hpp"
#include "probe/outcome.hpp"
#include "probe/service.hpp"
#include "select/fake.hpp"
#include "select/ranking.hpp"

namespace bitnet::select {

// A parsed request: "auto", "cpu", "gpu", "mine:1", "mine,cpu".
struct request {
  std::string text = "auto";
  std::string requested_by = "default";
  bool require_first = false;
  bool allow_fallback = false;
  bool strict = false;  // every doubt about what it could mean is an error
};

// A backend and device that were loaded and opened. `backend` keeps the plugin alive.
struct choice {
  std::shared_ptr<plugin::backend> backend;
  uint32_t device_index = 0;
  bitnet_device_info device{};
  std::string build_id;
  // All that the device listed when it was chosen; nullptr: a fake's.
  std::shared_ptr<const std::vector<bitnet_kernel_info>> kernels{};

  [[nodiscard]] std::string device_name() const;  // "cpu:0"
};

using device_report = probe::device_report;

// What became of one candidate. `stage` is the last one reached: found, inspected, probing, loaded,
// probed, selected.
struct backend_report {
  std::string name, stage, code, reason, hint;
  std::string manifest, library, version, vendor, license, build_id, abi;
  std::string named;                     // the library as the manifest names it, through links
  std::vector<std::string> environment;  // "NAME=value" of the variables that change what it finds
  std::vector<device_report> devices;
  struct standing {
    uint32_t rank = 0;  // among all usable devices, from 1; 0: not usable
    score facts;
    std::string same_as;  // the device of a better backend that is the same hardware
  };
  std::vector<standing> standings;  // of devices
  bool fake = false;
  std::optional<probe::outcome> probed;  // how its probe went; devices and fault are above
};

struct report {
  std::string requested = "auto", requested_by = "default";
  std::vector<std::string> detected;  // probed successfully on this machine, best first
  std::string selected;               // "" when none
  std::string selected_device;        // "cpu:0"
  bool fell_back = false;             // the request names nothing that works, and allows anything
  std::vector<backend_report> backends;
  struct directory {
    std::string path, result;
  };
  std::vector<directory> searched;

  [[nodiscard]] std::string line() const;  // "requested=auto detected=[cpu] selected=cpu"
  [[nodiscard]] std::string json() const;
};

// Everything that was found: manifests are read. A plugin's file is opened, inspected and loaded
// only when a request could mean it.
class registry {
 public:
  // `directories` replaces the built-in search path when not empty.
  static registry scan(const std::vector<std::filesystem::path>& directories,
                       plugin::host_services& host, plugin::policy rules = {},
                       probe::settings probing = probe::settings::usual());

  // Adds backends that are only pretended; a real one of the same name gives way.
  void pretend(const std::vector<fake_backend>& fakes);

  // Probes what the request can use, each in a process of its own, chooses, loads, explains. Waits
  // for slow ones only as long as there is nothing else to choose. On failure the report is filled
  // just the same. BITNET_UNAVAILABLE, BITNET_REJECTED, BITNET_INVALID_ARGUMENT (malformed
  // request).
  result<choice> select(const request& wanted, report& out);
  // Probes every backend, for `backends list|info|why`; slow ones go on behind.
  void probe_all(report& out);
  // Takes what probes have brought meanwhile into the report. True if all have answered.
  bool collect(report& out);
  // Until all probes have answered, at most until `end`; from any thread, also while others call
  // what is above. Takes nothing: collect() does. True if all have answered.
  [[nodiscard]] bool wait(std::chrono::steady_clock::time_point end) const;
  // The first device that the request names, in its order, and that is none of `without`: devices
  // ("mine:0") and whole backends ("mine"). What the report says of the first choice stays.
  // BITNET_TIMEOUT where nothing can be used and some have not answered in longest_wait_ms.
  struct other_choice {
    choice taken;
    std::vector<std::string> late;  // backends that come first, and have not answered
  };
  result<other_choice> select_other(const request& wanted, const std::set<std::string>& without);

  // What is loaded of a backend, and build id and version of its file. nullptr: nothing.
  struct loaded_copy {
    std::shared_ptr<plugin::backend> backend;
    std::string build_id, version;
  };
  [[nodiscard]] loaded_copy loaded(const std::string& name) const;
  // Looks for the backend's manifest and file as if for the first time, and inspects what is there
  // now. The registry stays as it is until adopt().
  class renewal;
  // The backend that a text means: its name or, with a '/' in it, the path of its library or of its
  // manifest, through links too. Manifests are looked for anew.
  [[nodiscard]] plugin::checked<std::string> meant_by(const std::string& text) const;
  [[nodiscard]] plugin::checked<renewal> renew(const std::string& name);
  void adopt(renewal fresh, report& out);

  registry(registry&&) noexcept;
  registry& operator=(registry&&) noexcept;
  ~registry();

 private:
  struct contents;
  explicit registry(std::unique_ptr<contents> c);
  std::unique_ptr<contents> contents_;
};

// A backend as it is on disk now, beside the one that the registry knows.
class registry::renewal {
 public:
  renewal(renewal&&) noexcept;
  renewal& operator=(renewal&&) noexcept;
  ~renewal();

  [[nodiscard]] const plugin::inspection& facts() const;
  [[nodiscard]] plugin::file_identity file() const;
  // Probes it. Needed before load() and adopt().
  [[nodiscard]] plugin::checked<void> probe();
  // Device `index` of a newly loaded copy: the same copy each time. BN-P-ANSWER if there is no such
  // device any more.
  [[nodiscard]] plugin::checked<choice> load(uint32_t index);

 private:
  friend registry;
  struct contents;
  explicit renewal(std::unique_ptr<contents> c);
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::select
