#pragma once
// Reads the environment of the process; no other file does.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitnet::host {

// Whether the process has more rights than the user who set its variables.
enum class privilege : uint8_t {
  none,
  root,    // started by root, perhaps with the variables of another user
  raised,  // setuid, setgid or file capabilities: the flags, too, are another user's
};

class environment {
 public:
  static environment of_process();
  explicit environment(std::map<std::string, std::string, std::less<>> variables,
                       privilege rights = privilege::none)
      : variables_(std::move(variables)), rights_(rights) {}

  [[nodiscard]] privilege rights() const { return rights_; }

  // Returns nothing for an empty variable too.
  [[nodiscard]] std::optional<std::string> get(std::string_view name) const;

  // {key, value} of the settings for a backend (BITNET_<NAME>_<KEY>), which libbitnet gives it.
  // With raised privileges there are none.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> backend_settings(
      std::string_view backend) const;

  // $XDG_CONFIG_HOME or ~/.config, and so on; nothing if HOME is unset too. state_home() and
  // cache_home() are written to, so with raised privileges they are nothing, and as root they are
  // nothing if the folder belongs to another user.
  [[nodiscard]] std::optional<std::filesystem::path> config_home() const;
  [[nodiscard]] std::optional<std::filesystem::path> data_home() const;
  [[nodiscard]] std::optional<std::filesystem::path> state_home() const;
  [[nodiscard]] std::optional<std::filesystem::path> cache_home() const;

 private:
  [[nodiscard]] std::optional<std::filesystem::path> xdg(std::string_view name,
                                                         std::string_view below_home) const;
  [[nodiscard]] std::optional<std::filesystem::path> to_write_in(
      std::optional<std::filesystem::path> folder) const;

  std::map<std::string, std::string, std::less<>> variables_;
  privilege rights_;
};

}  // namespace bitnet::host
