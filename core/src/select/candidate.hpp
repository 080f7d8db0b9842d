#pragma once
// One backend that was found, and all that is known about it so far.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/codes.hpp"
#include "plugin/discover.hpp"
#include "plugin/inspect.hpp"
#include "select/selection.hpp"

namespace bitnet::select {

class candidate {
 public:
  // Inspects what the manifest names; nothing is executed.
  explicit candidate(plugin::found_manifest found);

  // Loads the plugin, lists its devices and kernels, and closes it again. Once; later calls do
  // nothing.
  void probe(plugin::host_services& host);
  // Loads it to stay, unless it is loaded, and compares device `index` with what the probe saw.
  [[nodiscard]] std::shared_ptr<plugin::backend> load(uint32_t index, plugin::host_services& host);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] uint32_t manifest_class() const;  // 0 if the manifest cannot be read
  [[nodiscard]] int32_t priority() const;
  [[nodiscard]] const std::vector<std::string>& warnings() const;
  [[nodiscard]] const std::vector<device_report>& devices() const { return devices_; }
  [[nodiscard]] const std::optional<plugin::defect>& fault() const { return fault_; }
  [[nodiscard]] const plugin::inspection& facts() const;  // empty if it could not be inspected
  [[nodiscard]] const plugin::file_identity& file() const { return identity_; }
  [[nodiscard]] std::shared_ptr<plugin::backend> loaded() const { return loaded_.lock(); }
  [[nodiscard]] bool is_disabled() const;
  [[nodiscard]] bool is_usable() const { return probed_ && !fault_; }

  // What the last selection made of it; shown unless there is a fault.
  void judge(plugin::code c, std::string why, bool selected = false);

  [[nodiscard]] backend_report describe() const;

 private:
  [[nodiscard]] plugin::checked<void> inspect(const plugin::manifest& m);
  [[nodiscard]] plugin::checked<std::shared_ptr<plugin::backend>> open(uint32_t purpose,
                                                                       plugin::host_services& host);

  std::string name_;
  std::filesystem::path manifest_file_, library_;
  std::optional<plugin::manifest> manifest_;
  std::optional<plugin::inspection> facts_;
  plugin::file_identity identity_;
  std::string stage_ = "found";
  std::optional<plugin::defect> fault_;
  std::vector<device_report> devices_;
  std::weak_ptr<plugin::backend> loaded_;
  bool probed_ = false, selected_ = false;
  plugin::code verdict_ = plugin::code::ok;
  std::string why_;
};

}  // namespace bitnet::select
