#include "settings/arguments.hpp"

#include <fmt/format.h>

#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <string>
#include <utility>

#include "settings/option_names.hpp"
#include "settings/suggest.hpp"

namespace bitnet::host {
namespace {

namespace po = boost::program_options;

bool is_flag(std::string_view name) {
  const option* row = find_option(name);
  return row != nullptr && row->type == kind::flag;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The flag that `--no-NAME` turns off; nullptr if that is the whole name of an option.
const option* negated(std::string_view flag) {
  if (!flag.starts_with("--no-") || find_option(flag.substr(2)) != nullptr) return nullptr;
  return is_flag(flag.substr(5)) ? find_option(flag.substr(5)) : nullptr;
}

std::vector<std::string> flags_of(const command& about) {
  std::vector<std::string> flags;
  for (const option& row : all_options()) {
    if ((row.commands & about.bit) == 0) continue;
    const option_names names = names_of(row);
    flags.insert(flags.end(), names.longs.begin(), names.longs.end());
    if (row.type == kind::flag) flags.push_back("--no-" + std::string(row.name));
    flags.insert(flags.end(), names.shorts.begin(), names.shorts.end());
  }
  return flags;
}

// Accepts -n128, a one-letter flag with its number; nullptr for any other word.
const option* joined(const std::string& word, command_set takers) {
  if (word.size() < 3 || word[1] == '-' || !is_digit(word[2])) return nullptr;
  const option* row = find_flag(word.substr(0, 2), takers);
  return row != nullptr && row->type != kind::flag ? row : nullptr;
}

std::string unknown(const command& about, const std::string& flag) {
  const bool elsewhere = find_flag(flag, about.bit) != nullptr || negated(flag) != nullptr ||
                         joined(flag, about.bit) != nullptr;
  if (elsewhere)
    return fmt::format("`bitnet {0}` has no flag {1}; see bitnet {0} --help", about.name, flag);
  return fmt::format("unknown flag {}{}; see bitnet {} --help", flag,
                     suggestion(flag, flags_of(about)), about.name);
}

// Put before a word that is no flag of the command; the library then reports it as unknown.
constexpr char no_key = '\1';

// Handles what Program_options has no style for: llama.cpp's names with one dash and several
// letters, -1 as a value, --name= with an empty value, and flags whose optional value must be in
// the same word (their key is `name=`). If it returns nothing, the library parses the word. The
// library also passes words that become values, so it rejects none itself.
class llama_style {
 public:
  explicit llama_style(const command& about) : bit_(about.bit) {}

  std::vector<po::option> operator()(std::vector<std::string>& words) const {
    const std::string word = words.front();
    if (word.size() < 2 || word[0] != '-' || word == "--") return {};
    const std::size_t equals = word.find('=');
    po::option read;
    if (word[1] != '-')
      read = one_dash(word);
    else if (word[2] == '-' || word[2] == '=')
      read.string_key = no_key + word;
    else if (is_flag(word.substr(2, equals - 2)) && equals != std::string::npos)
      read = {word.substr(2, equals - 1), {word.substr(equals + 1)}};
    else if (equals == word.size() - 1)
      read = {word.substr(2, equals - 2), {""}};
    else
      return {};
    read.original_tokens = {word};
    words.erase(words.begin());
    return {read};
  }

 private:
  po::option one_dash(const std::string& word) const {
    if (is_digit(word[1])) return {"", {word}};
    const option* row = find_flag(word, bit_);
    const option* with_number = joined(word, bit_);
    if (row != nullptr && (row->commands & bit_) != 0) return {std::string(row->name), {}};
    if (with_number != nullptr && (with_number->commands & bit_) != 0)
      return {std::string(with_number->name), {word.substr(2)}};
    return {no_key + word, {}};
  }

  command_set bit_;
};

// Describes the command's options by their long names. Values stay text here; parse_value checks
// them.
po::options_description described(const command& about) {
  po::options_description out;
  for (const option& row : all_options()) {
    if ((row.commands & about.bit) == 0) continue;
    std::string names;
    std::string with_value;  // flags' keys with a value
    for (const std::string& name : long_names_of(row)) {
      names += (names.empty() ? "" : ",") + name;
      with_value += (with_value.empty() ? "" : ",") + name + '=';
      const std::string no = "no-" + name;
      if (negated("--" + no) == &row) out.add_options()(no.c_str(), "");
    }
    names += "," + std::string(row.name);  // else Boost takes a last name of one letter as -n
    if (row.type == kind::flag)
      out.add_options()(names.c_str(), "")(with_value.c_str(), po::value<std::string>());
    else
      out.add_options()(names.c_str(), po::value<std::string>());
  }
  return out;
}

// The flag in an error of the library, as it was typed.
std::string typed(const po::error_with_option_name& e) {
  const std::string name = e.get_option_name();
  const std::size_t own = name.find(no_key);
  const std::string flag = own == std::string::npos ? name : name.substr(own + 1);
  return flag.starts_with("--") ? flag.substr(0, flag.find('=')) : flag;
}

std::string needs_value(const command& about, const std::string& flag) {
  const option* row = find_flag(flag, about.bit);
  return fmt::format("{} needs a value ({})", flag, row == nullptr ? "" : row->metavar);
}

arguments parsed(const command& about, const std::vector<std::string>& words) {
  const po::options_description known = described(about);
  namespace style = po::command_line_style;
  // Without allow_guessing, since a prefix of a name is a typing error.
  const auto read =
      po::command_line_parser(words)
          .options(known)
          .style(style::allow_long | style::long_allow_adjacent | style::long_allow_next)
          .extra_style_parser(llama_style(about))
          .run();
  arguments out;
  for (const po::option& one : read.options) {
    std::string text = one.value.empty() ? "true" : one.value.front();
    const std::string name = one.string_key.substr(0, one.string_key.find('='));
    const option* off = negated("--" + name);
    if (name.empty())
      out.positionals.push_back(std::move(text));
    else if (off != nullptr)
      out.flags.push_back({off, "false"});
    else
      out.flags.push_back({find_option(name), std::move(text)});
  }
  return out;
}

}  // namespace

result<arguments> parse_arguments(const command& about, const std::vector<std::string>& words) {
  try {
    return parsed(about, words);
  } catch (const po::unknown_option& e) {
    return fail(exit_code::usage, unknown(about, typed(e)));
  } catch (const po::invalid_command_line_syntax& e) {
    // Any word can be a value, so a flag without one is the last word.
    return fail(exit_code::usage, e.kind() == po::invalid_syntax::missing_parameter
                                      ? needs_value(about, words.back())
                                      : fmt::format("{} takes no value", typed(e)));
  } catch (const po::error& e) {
    return fail(exit_code::usage, e.what());
  }
}

}  // namespace bitnet::host
