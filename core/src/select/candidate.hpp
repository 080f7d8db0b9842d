#pragma once
// A found backend and all that is known about it so far.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/codes/codes.hpp"
#include "plugin/inspection/inspect.hpp"
#include "plugin/manifest/discover.hpp"
#include "plugin/trust/policy.hpp"
#include "probe/service.hpp"
#include "select/selection.hpp"

namespace bitnet::select {

class candidate {
 public:
  // Reads only the manifest. Its library is opened when a request may mean it. `rules` outlive the
  // candidate.
  candidate(plugin::found_manifest found, const plugin::policy& rules);

  // Makes a fake backend.
  candidate(const fake_backend& fake, const plugin::policy& rules);

  // Excludes it without inspection, for this reason.
  void leave_out(plugin::defect why);
  // Inspects the file without executing it. Later calls do nothing.
  void inspect();
  // Inspects it and takes its devices from the cache. Later calls do nothing.
  void recall(probe::service& probes, plugin::host_services& host);
  // Starts a probe if the cache has no answer. Later calls do nothing.
  void start_probe(probe::service& probes, plugin::host_services& host, bool needed);
  // The expected result of a probe, if its devices are not known.
  [[nodiscard]] probe::service::prospect expect(probe::service& probes);
  // Takes the answer of its probe if it has come.
  void collect(probe::service& probes);
  // Loads it permanently, once, and compares its answers with the probe's. nullptr: it has a fault
  // now, or the cached answer was wrong and it must be probed again.
  [[nodiscard]] std::shared_ptr<plugin::backend> load(uint32_t index, probe::service& probes,
                                                      plugin::host_services& host);
  // Takes over the progress of its probe.
  void follow(const probe::service& probes);

  [[nodiscard]] const std::string& name() const { return name_; }
  // Whether this is its name or one of its manifest's aliases.
  [[nodiscard]] bool is_called(const std::string& name) const;
  [[nodiscard]] std::string shown_name() const { return fake_ ? name_ + "(fake)" : name_; }
  [[nodiscard]] bool is_fake() const { return fake_; }
  // Reasons why strict mode rejects it although it is usable.
  [[nodiscard]] std::vector<std::string> doubts() const;
  [[nodiscard]] uint32_t manifest_class() const;  // 0 if the manifest cannot be read
  [[nodiscard]] int32_t priority() const;
  [[nodiscard]] std::vector<std::string> conflicts() const;  // from its manifest
  [[nodiscard]] const std::vector<std::string>& warnings() const;
  [[nodiscard]] const std::vector<device_report>& devices() const { return devices_; }
  [[nodiscard]] const std::optional<plugin::defect>& fault() const { return fault_; }
  [[nodiscard]] const plugin::inspection& facts() const;  // empty if it could not be inspected
  [[nodiscard]] plugin::file_identity file() const {
    return file_ ? file_->identity : plugin::file_identity{};
  }
  [[nodiscard]] std::shared_ptr<plugin::backend> loaded() const { return loaded_.lock(); }
  [[nodiscard]] bool is_disabled() const;
  [[nodiscard]] bool is_usable() const { return probed_ && !fault_; }
  // Inspected without a fault, and not probed yet.
  [[nodiscard]] bool is_unasked() const { return subject_ && !asked_ && !fault_; }
  [[nodiscard]] const std::optional<probe::ticket>& running() const { return running_; }

  // Sets the verdict of the last selection; shown if it has no fault.
  void judge(plugin::code c, std::string why, bool selected = false);

  [[nodiscard]] backend_report describe() const;

 private:
  [[nodiscard]] plugin::checked<void> locate(const plugin::manifest& m);
  [[nodiscard]] plugin::checked<void> examine(const plugin::manifest& m);
  [[nodiscard]] plugin::checked<std::shared_ptr<plugin::backend>> open(
      const plugin::trusted_file& file, plugin::host_services& host) const;
  void adopt(probe::outcome f);

  const plugin::policy* rules_;
  std::string name_;
  std::filesystem::path manifest_file_, library_;
  std::filesystem::path named_;  // the manifest's library, before symbolic links are resolved
  std::optional<plugin::manifest> manifest_;
  std::optional<plugin::inspection> facts_;
  std::optional<plugin::trusted_file> file_;  // the inspected file, which is the one that is loaded
  std::string stage_ = "found";
  std::optional<plugin::defect> fault_;
  std::optional<probe::subject> subject_;
  std::optional<probe::ticket> running_;
  probe::outcome outcome_;
  std::vector<device_report> devices_;
  bool asked_ = false, doubted_ = false;  // doubted: the cached answer proved wrong
  std::weak_ptr<plugin::backend> loaded_;
  bool probed_ = false, selected_ = false, fake_ = false;
  plugin::code verdict_ = plugin::code::ok;
  std::string why_;
};

}  // namespace bitnet::select
