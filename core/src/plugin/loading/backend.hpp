#pragma once
// From a shared object on disk to a backend that is safe to call: checked, copied, no slot null.

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
  // `expected_name` is the ELF note's. A plugin that declares BITNET_LIFE_UNLOADABLE is given back
  // to the linker with its backend where it `may_unload`; others stay mapped for the life of the
  // process.
  static result<std::shared_ptr<backend>> load(const std::filesystem::path& library,
                                               const std::string& expected_name, uint32_t purpose,
                                               host_services& host);
  using settings = std::vector<std::pair<std::string, std::string>>;
  // The same, with the code of what is wrong (BN-A-*), for a file that was checked: what is loaded
  // is what was opened. `extra` settings come after the host's.
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
  // What it was given when it was opened; of a key that comes twice the last counts.
  [[nodiscard]] const settings& given() const;
  // The file that it was loaded from, as it was when it was checked, and as the kernel lists it.
  [[nodiscard]] const file_identity& file() const;
  // The same file, held open: its bytes stay readable when another file took its path.
  [[nodiscard]] const std::shared_ptr<const trusted_file>& opened_file() const;
  [[nodiscard]] mapped_identity mapped() const;
  [[nodiscard]] uint32_t life_flags() const;  // BITNET_LIFE_*
  // Gets the breaches of rules that the host put right.
  [[nodiscard]] const std::shared_ptr<plugin::complaints>& complaints() const;

 private:
  struct contents;
  explicit backend(std::unique_ptr<contents> c);
  checked<void> introduce(const std::string& expected_name);
  std::unique_ptr<contents> contents_;
};

}  // namespace bitnet::plugin
