#include "settings/arguments.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cctype>

#include "settings/suggest.hpp"

namespace bitnet::host {
namespace {

namespace po = boost::program_options;

std::vector<std::string> flags_of(const command& about) {
  std::vector<std::string> flags;
  for (const option& row : all_options()) {
    if ((row.commands & about.bit) == 0) continue;
    flags.push_back("--" + std::string(row.name));
    if (row.type == kind::flag) flags.push_back("--no-" + std::string(row.name));
    std::size_t begin = 0;
    while (begin < row.aliases.size()) {
      const std::size_t end = std::min(row.aliases.find(' ', begin), row.aliases.size());
      flags.emplace_back(row.aliases.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return flags;
}

// Reads one flag with its value from the front of `words`, as a style parser of Program_options:
// that library has no single-dash names of several letters (-ctk) and no --no-name.
class style {
 public:
  explicit style(const command& about) : about_(about) {}

  std::vector<po::option> operator()(std::vector<std::string>& words) const {
    const std::string word = words.front();
    if (ended_ || word.size() < 2 || word[0] != '-') return positional(words);
    if (word == "--") {
      ended_ = true;
      words.erase(words.begin());
      return {};
    }
    if (word[1] != '-' && (std::isdigit(static_cast<unsigned char>(word[1])) != 0)) {
      return positional(words);  // "-1" is a value
    }
    words.erase(words.begin());
    return {flag(word, words)};
  }

 private:
  static std::vector<po::option> positional(std::vector<std::string>& words) {
    po::option one("", {words.front()});
    one.position_key = 0;
    one.original_tokens = {words.front()};
    words.erase(words.begin());
    return {one};
  }

  po::option flag(const std::string& word, std::vector<std::string>& words) const {
    const auto equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    bool negative = false;
    const option* row = find_flag(name, about_.bit);
    if (row == nullptr && name.starts_with("--no-")) {
      row = find_flag("--" + name.substr(5), about_.bit);
      negative = row != nullptr && row->type == kind::flag;
      if (!negative) row = nullptr;
    }
    std::string text;
    bool has_value = equals != std::string::npos;
    if (has_value) text = word.substr(equals + 1);
    if (row == nullptr) row = joined(word, text, has_value);
    if (row == nullptr || (row->commands & about_.bit) == 0) throw unknown(name, row != nullptr);

    if (row->type == kind::flag) {
      if (negative && has_value) throw po::error(fmt::format("{} takes no value", name));
      if (!has_value) text = negative ? "false" : "true";
    } else if (!has_value) {
      if (words.empty()) throw po::error(fmt::format("{} needs a value ({})", name, row->metavar));
      text = words.front();
      words.erase(words.begin());
    }
    po::option one(std::string(row->name), {text});
    one.original_tokens = {word};
    return one;
  }

  // -n128: a one-letter flag with its number.
  const option* joined(const std::string& word, std::string& text, bool& has_value) const {
    if (word.size() < 3 || word[1] == '-') return nullptr;
    if (std::isdigit(static_cast<unsigned char>(word[2])) == 0) return nullptr;
    const option* row = find_flag(word.substr(0, 2), about_.bit);
    if (row == nullptr || row->type == kind::flag) return nullptr;
    text = word.substr(2);
    has_value = true;
    return row;
  }

  [[nodiscard]] po::error unknown(const std::string& name, bool elsewhere) const {
    if (elsewhere) {
      return po::error(fmt::format("`bitnet {}` has no flag {}; see bitnet {} --help", about_.name,
                                   name, about_.name));
    }
    return po::error(fmt::format("unknown flag {}{}; see bitnet {} --help", name,
                                 suggestion(name, flags_of(about_)), about_.name));
  }

  const command& about_;
  mutable bool ended_ = false;  // after "--"
};

}  // namespace

result<arguments> parse_arguments(const command& about, const std::vector<std::string>& words) {
  po::options_description known;
  for (const option& row : all_options()) {
    if ((row.commands & about.bit) == 0) continue;
    known.add_options()(std::string(row.name).c_str(), po::value<std::string>());
  }
  known.add_options()("", po::value<std::vector<std::string>>());
  try {
    const auto parsed =
        po::command_line_parser(words)
            .options(known)
            // Without allow_guessing: a prefix of a name is a typing error.
            .style(po::command_line_style::allow_long | po::command_line_style::long_allow_next)
            .extra_style_parser(style(about))
            .run();
    arguments out;
    for (const po::option& one : parsed.options) {
      const std::string text = one.value.empty() ? "" : one.value.front();
      if (one.string_key.empty()) {
        out.positionals.push_back(text);
      } else {
        out.flags.push_back({find_option(one.string_key), text});
      }
    }
    return out;
  } catch (const po::error& e) {
    return fail(exit_code::usage, e.what());
  }
}

}  // namespace bitnet::host
