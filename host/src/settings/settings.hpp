#pragma once
// What the user asked for: built-in default < config files < environment < flags, merged once.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"
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
  // Of a text: each value that the command line gives it, in order; else the one that it has.
  [[nodiscard]] std::vector<std::string> each_text(std::string_view name) const;

  // Whether the command has this option; all else that is asked of others is a mistake here.
  [[nodiscard]] bool has(std::string_view name) const { return settings_.contains(name); }
  // Set by any source but the built-in default.
  [[nodiscard]] bool given(std::string_view name) const;
  // Whether `name` comes from a source of the same rank as that of `other`, or of a higher one.
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
    std::vector<std::string> before = {};  // values of a text that later flags replaced
  };

  result<void> add_defaults(const command& about);
  result<void> add_config(const arguments& given, const environment& variables,
                          std::vector<std::string>& notes);
  result<void> add_config_file(const std::string& file, bool required, privilege deaf_from,
                               std::vector<std::string>& notes);
  result<void> add_environment(const environment& variables, std::vector<std::string>& notes);
  result<void> add_flags(const arguments& given, std::vector<std::string>& notes);
  // Options that decide which code runs, or which file is written, do not count when they come from
  // a place that a process with these rights, or more, does not trust; a note says so.
  bool listens(const option& row, const value& content, privilege deaf_from,
               const std::string& origin, std::vector<std::string>& notes);
  // Of those that ask for a check: it is not left out because nothing that counts asks for it.
  [[nodiscard]] result<void> check_unheard() const;
  void put(const option& row, value content, level from, std::string origin);
  [[nodiscard]] const setting& at(std::string_view name) const;

  privilege rights_ = privilege::none;
  std::map<std::string_view, std::string> unheard_;  // of options that ask for a check, and why
  std::map<std::string_view, setting> settings_;     // keys point into the option table
};

}  // namespace bitnet::host
