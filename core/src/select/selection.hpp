#pragma once
// Selects the backend that computes, and explains why. No other code decides this.
//
// The log line, --json and the C API use the report that is made here.

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
  bool strict = false;  // ambiguity is an error
};

// A loaded backend and its open device. `backend` keeps the plugin alive.
struct choice {
  std::shared_ptr<plugin::backend> backend;
  uint32_t device_index = 0;
  bitnet_device_info device{};
  std::string build_id;
  // All kernels that the device listed when it was chosen; nullptr for a fake.
  std::shared_ptr<const std::vector<bitnet_kernel_info>> kernels{};

  [[nodiscard]] std::string device_name() const;  // "cpu:0"
};

using device_report = probe::device_report;

// The result for a candidate. `stage` is the last one reached: found, inspected, probing, loaded,
// probed, selected.
struct backend_report {
  std::string name, stage, code, reason, hint;
  std::string manifest, library, version, vendor, license, build_id, abi;
  std::string named;                     // the manifest's library, before links are resolved
  std::vector<std::string> environment;  // "NAME=value" of variables that affect its devices
  std::vector<device_report> devices;
  struct standing {
    uint32_t rank = 0;  // among all usable devices, from 1; 0: not usable
    score facts;
    std::string same_as;  // the same hardware in a better backend
  };
  std::vector<standing> standings;  // one per device
  bool fake = false;
  std::optional<probe::outcome> probed;  // its probe; devices and fault are above
};

struct report {
  std::string requested = "auto", requested_by = "default";
  std::vector<std::string> detected;  // probed successfully on this machine, best first
  std::string selected;               // "" when none
  std::string selected_device;        // "cpu:0"
  bool fell_back = false;             // nothing in the request works, but it allows any device
  std::vector<backend_report> backends;
  struct directory {
    std::string path, result;
  };
  std::vector<directory> searched;

  [[nodiscard]] std::string line() const;  // "requested=auto detected=[cpu] selected=cpu"
  [[nodiscard]] std::string json() const;
};

// All backends found: manifests are read. A plugin's file is opened, inspected and loaded only when
// a request may mean it.
class registry {
 public:
  // `directories` replaces the built-in search path unless empty.
  static registry scan(const std::vector<std::filesystem::path>& directories,
                       plugin::host_services& host, plugin::policy rules = {},
                       probe::settings probing = probe::settings::usual());

  // Adds fake backends; a fake replaces a real one of the same name.
  void pretend(const std::vector<fake_backend>& fakes);

  // Probes the backends that the request can use, each in its own process; chooses, loads,
  // explains. Waits for slow ones only if there is nothing else to choose. A failure fills the
  // report, too. BITNET_UNAVAILABLE, BITNET_REJECTED, BITNET_INVALID_ARGUMENT (malformed request).
  result<choice> select(const request& wanted, report& out);
  // Probes every backend, for `backends list|info|why`; slow probes continue in the background.
  void probe_all(report& out);
  // Adds new answers of probes to the report. Returns true if all have come.
  bool collect(report& out);
  // Waits until all probes have answered, at most until `end`; any thread, also during the calls
  // above. Takes no answers: collect() does. Returns true if all have answered.
  [[nodiscard]] bool wait(std::chrono::steady_clock::time_point end) const;
  // The first device of the request that is not in `without`: devices ("mine:0") and whole backends
  // ("mine"). The report on the first choice stays. BITNET_TIMEOUT if no device can be used and
  // some backends have not answered in longest_wait_ms.
  struct other_choice {
    choice taken;
    std::vector<std::string> late;  // backends before it that have not answered
  };
  result<other_choice> select_other(const request& wanted, const std::set<std::string>& without);

  // The loaded copy of a backend, with build id and version of its file. nullptr: not loaded.
  struct loaded_copy {
    std::shared_ptr<plugin::backend> backend;
    std::string build_id, version;
  };
  [[nodiscard]] loaded_copy loaded(const std::string& name) const;
  // Finds and inspects the backend's manifest and file again. The registry is unchanged until
  // adopt().
  class renewal;
  // The backend that a text means: its name or, if it contains '/', the path of its library or
  // manifest, also through links. Searches manifests again.
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

// A backend as it is on disk now, beside the one in the registry.
class registry::renewal {
 public:
  renewal(renewal&&) noexcept;
  renewal& operator=(renewal&&) noexcept;
  ~renewal();

  [[nodiscard]] const plugin::inspection& facts() const;
  [[nodiscard]] plugin::file_identity file() const;
  // Probes it. Required before load() and adopt().
  [[nodiscard]] plugin::checked<void> probe();
  // Device `index` of a newly loaded copy, which is the same in each call. BN-P-ANSWER if the
  // device no longer exists.
  [[nodiscard]] plugin::checked<choice> load(uint32_t index);

 private:
  friend registry;
  struct contents;
  explicit renewal(std::unique_ptr<contents> c);
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::select
