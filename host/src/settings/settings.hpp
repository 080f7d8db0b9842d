#pragma once
// The settings, merged once: built-in default < config files < environment < flags.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"
#include "settings/arguments.hpp"
#include "settings/environment.hpp"
#include "settings/option.hpp"
#include "settings/value.hpp"

namespace bitnet::host {

class settings {
 public:
  // `notes` receives warnings of config files and the notice about llama.cpp's variables.
  static result<settings> merge(const command& about, const arguments& given,
                                const environment& variables, std::vector<std::string>& notes);

  // `name` is one of the command's options; anything else is a bug of the caller.
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] int64_t integer(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;
  [[nodiscard]] const std::string& text(std::string_view name) const;  // "" when not given
  [[nodiscard]] const std::vector<std::string>& list(std::string_view name) const;
  // For a text option: all values from the command line in order, else its single value.
  [[nodiscard]] std::vector<std::string> each_text(std::string_view name) const;

  // Whether the command has this option. The other functions must not be called without it.
  [[nodiscard]] bool has(std::string_view name) const { return settings_.contains(name); }
  // Set by a source other than the built-in default.
  [[nodiscard]] bool given(std::string_view name) const;
  // Whether the source of `name` has the same rank as that of `other`, or a higher one.
  [[nodiscard]] bool overrides(std::string_view name, std::string_view other) const;
  // Set on the command line.
  [[nodiscard]] bool flagged(std::string_view name) const;
  // "default", "/etc/bitnet/bitnet.yaml:7", "BITNET_DEVICE", "--device"
  [[nodiscard]] const std::string& origin(std::string_view name) const;

  // Replaces a value, as /set does in a chat.
  result<void> change(std::string_view name, std::string_view text, std::string origin);

 private:
  enum class level : uint8_t { built_in, config, environment, flag };
  struct setting {
    value content;
    level from = level::built_in;
    std::string origin = "default";
    std::vector<std::string> before = {};  // a text's values that later flags replaced
  };

  result<void> add_defaults(const command& about);
  result<void> add_config(const arguments& given, const environment& variables,
                          std::vector<std::string>& notes);
  result<void> add_config_file(const std::string& file, bool required, privilege deaf_from,
                               std::vector<std::string>& notes);
  result<void> add_environment(const environment& variables, std::vector<std::string>& notes);
  result<void> add_flags(const arguments& given, std::vector<std::string>& notes);
  // Options that decide which code runs or which file is written are ignored if they come from a
  // place that a process with rights of `deaf_from` or more does not trust; a note says so.
  bool listens(const option& row, const value& content, privilege deaf_from,
               const std::string& origin, std::vector<std::string>& notes);
  // An error if a check was requested by ignored places only: it must not be skipped silently.
  [[nodiscard]] result<void> check_unheard() const;
  void put(const option& row, value content, level from, std::string origin);
  [[nodiscard]] const setting& at(std::string_view name) const;

  privilege rights_ = privilege::none;
  std::map<std::string_view, std::string> unheard_;  // ignored checks, with the reason
  std::map<std::string_view, setting> settings_;     // keys point into the option table
};

}  // namespace bitnet::host
