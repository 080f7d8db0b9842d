#include "settings/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "settings/suggest.hpp"

namespace bitnet::host {
namespace {

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

// Reads the words from the front to the end.
class reader {
 public:
  reader(const command& about, const std::vector<std::string>& words)
      : about_(about), words_(words) {}

  result<arguments> read() {
    bool ended = false;  // by "--"
    while (next_ != words_.size()) {
      const std::string& word = words_[next_++];
      if (ended || !is_flag(word)) {
        out_.positionals.push_back(word);
      } else if (word == "--") {
        ended = true;
      } else if (auto read = flag(word); !read) {
        return std::unexpected(read.error());
      }
    }
    return std::move(out_);
  }

 private:
  // "-" is a file and "-1" a value.
  static bool is_flag(const std::string& word) {
    return word.size() >= 2 && word[0] == '-' && !is_digit(word[1]);
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  // One flag, and its value where that is the next word.
  result<void> flag(const std::string& word) {
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
    if (row == nullptr || (row->commands & about_.bit) == 0) return unknown(name, row != nullptr);

    if (row->type == kind::flag) {
      if (negative && has_value)
        return fail(exit_code::usage, fmt::format("{} takes no value", name));
      if (!has_value) text = negative ? "false" : "true";
    } else if (!has_value) {
      if (next_ == words_.size())
        return fail(exit_code::usage, fmt::format("{} needs a value ({})", name, row->metavar));
      text = words_[next_++];
    }
    out_.flags.push_back({row, std::move(text)});
    return {};
  }

  // -n128: a one-letter flag with its number.
  const option* joined(const std::string& word, std::string& text, bool& has_value) const {
    if (word.size() < 3 || word[1] == '-' || !is_digit(word[2])) return nullptr;
    const option* row = find_flag(word.substr(0, 2), about_.bit);
    if (row == nullptr || row->type == kind::flag) return nullptr;
    text = word.substr(2);
    has_value = true;
    return row;
  }

  [[nodiscard]] std::unexpected<failure> unknown(const std::string& name, bool elsewhere) const {
    if (elsewhere)
      return fail(exit_code::usage, fmt::format("`bitnet {}` has no flag {}; see bitnet {} --help",
                                                about_.name, name, about_.name));
    return fail(exit_code::usage, fmt::format("unknown flag {}{}; see bitnet {} --help", name,
                                              suggestion(name, flags_of(about_)), about_.name));
  }

  const command& about_;
  const std::vector<std::string>& words_;
  std::size_t next_ = 0;
  arguments out_;
};

}  // namespace

result<arguments> parse_arguments(const command& about, const std::vector<std::string>& words) {
  return reader(about, words).read();
}

}  // namespace bitnet::host
