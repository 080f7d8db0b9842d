#pragma once
// The table of all options of all commands. Parsing, help, environment and config file follow it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "settings/command_list.hpp"

namespace bitnet::host {

enum class kind : uint8_t {
  flag,     // --json, --no-json, --json=off
  integer,  // 4k = 4000, 4K = 4096
  real,
  text,
  list,    // may be repeated; in a config file a YAML list, in a variable split at `between`
  choice,  // one of `choices`
};

// A set of commands as bits, so that an option's row can name its commands.
using command_set = uint32_t;
namespace command_bit {
#define BITNET_COMMAND_PLACE(name, ...) name,
enum class place : uint8_t { BITNET_COMMANDS(BITNET_COMMAND_PLACE) count };
#undef BITNET_COMMAND_PLACE
#define BITNET_COMMAND_BIT(name, ...) \
  inline constexpr command_set name = command_set{1} << static_cast<unsigned>(place::name);
BITNET_COMMANDS(BITNET_COMMAND_BIT)
#undef BITNET_COMMAND_BIT
static_assert(static_cast<unsigned>(place::count) < 32, "command_set has a bit for each command");
inline constexpr command_set every = (command_set{1} << static_cast<unsigned>(place::count)) - 1;
}  // namespace command_bit

struct option {
  std::string_view name;          // long flag without dashes; also the config key
  std::string_view aliases = {};  // with dashes, separated by blanks
  kind type = kind::flag;
  std::string_view initial = {};  // in the user's notation; empty: no value
  std::string_view metavar = {};
  std::string_view help = {};
  std::string_view group = {};
  command_set commands = 0;
  std::string_view choices = {};  // "f16|f32"
  double lowest = 0;              // for integer and real; lowest == highest: any
  double highest = 0;
  char between = '\0';                   // separates list items in a variable; NUL: one item
  std::string_view llama_variable = {};  // llama.cpp's environment variable, read as a fallback
  bool command_line_only = false;        // makes no sense as a setting
  // "which code runs": root ignores such a value of other users. See settings::listens.
  std::string_view decides = {};
  // The option requests a check. If only untrusted places request it, the command is rejected.
  bool is_a_check = false;
};

[[nodiscard]] std::span<const option> all_options();
// `flag`: as the user wrote it: "--ctx-size", "-c". A short name may mean another option in another
// command; a row that none of `commands` has is returned only if there is no better one.
[[nodiscard]] const option* find_flag(std::string_view flag, command_set commands);
// `name`: its name or another long name, as in a config file.
[[nodiscard]] const option* find_option(std::string_view name);
// A variable per long name, the main name first: BITNET_N_PREDICT, BITNET_PREDICT.
[[nodiscard]] std::vector<std::string> variables_of(const option& row);

struct command {
  std::string_view name;
  std::string_view usage;    // shown after the name
  std::string_view summary;  // one line
  std::string_view details;  // paragraphs of its --help
  command_set bit;
  std::string_view words = {};  // positional words: "a|b"; COMMAND means all commands
};

[[nodiscard]] std::span<const command> all_commands();
[[nodiscard]] const command* find_command(std::string_view name);

}  // namespace bitnet::host
