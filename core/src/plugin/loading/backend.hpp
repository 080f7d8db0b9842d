#pragma once
// Loads a shared object as a backend that is safe to call: checked, copied, no slot null.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "bitnet/abi/backend.h"
#include "plugin/codes/codes.hpp"
#include "plugin/loading/host_services.hpp"
#include "plugin/loading/kept_state.hpp"
#include "plugin/loading/mapped_files.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {

class backend {
 public:
  // Opens the inspected file (RTLD_NOW | RTLD_LOCAL), negotiates the ABI and checks the table.
  // `expected_name`: from the ELF note. If it `may_unload`, a plugin that declares
  // BITNET_LIFE_UNLOADABLE is unloaded with its backend; others stay mapped for the life of the
  // process.
  static result<std::shared_ptr<backend>> load(const std::filesystem::path& library,
                                               const std::string& expected_name, uint32_t purpose,
                                               host_services& host);
  using settings = std::vector<std::pair<std::string, std::string>>;
  // The same for a checked file, with the code of the error (BN-A-*): it loads exactly the open
  // file. `extra` settings come after the host's.
  static checked<std::shared_ptr<backend>> open(trusted_file file, const std::string& expected_name,
                                                uint32_t purpose, host_services& host,
                                                const settings& extra = {}, bool may_unload = true);
  // Checks the file first (BN-T-*).
  static checked<std::shared_ptr<backend>> open(const std::filesystem::path& library,
                                                const std::string& expected_name, uint32_t purpose,
                                                host_services& host, const settings& extra = {},
                                                bool may_unload = true);
  ~backend();
  backend(const backend&) = delete;
  backend& operator=(const backend&) = delete;

  // The checked copy; no slot is null. First argument of its calls: table().self.
  [[nodiscard]] const bitnet_backend_v0& table() const;
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const std::string& version() const;
  // The settings at opening; of a duplicate key the last one counts.
  [[nodiscard]] const settings& given() const;
  // Identity of the loaded file, from when it was checked, as the kernel lists it.
  [[nodiscard]] const file_identity& file() const;
  // The same file, held open: readable even if another file has its path now.
  [[nodiscard]] const std::shared_ptr<const trusted_file>& opened_file() const;
  [[nodiscard]] mapped_identity mapped() const;
  [[nodiscard]] uint32_t life_flags() const;  // BITNET_LIFE_*
  // Collects the plugin's breaches of rules, which the host has undone.
  [[nodiscard]] const std::shared_ptr<plugin::complaints>& complaints() const;

 private:
  struct contents;
  explicit backend(std::unique_ptr<contents> c);
  checked<void> introduce(const std::string& expected_name);
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::plugin
