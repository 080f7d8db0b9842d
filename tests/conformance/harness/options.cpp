#include "harness/options.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace bitnet::conformance {

const char* const usage_text =
    "Usage: bitnet-backend-conformance [options] FILE.so\n\n"
    "Runs a backend through what the contract asks of it, each suite in a process of its own.\n\n"
    "  --suite NAME         only this suite; may be repeated\n"
    "  --test PATTERN       only tests like SUITE.TEST, where * is anything; may be repeated\n"
    "  --level LEVEL        the suites of bronze, silver or gold; fails if it is not reached\n"
    "  --device N           the device to compute on (default 0)\n"
    "  --set KEY=VALUE      a setting for the backend; may be repeated\n"
    "  --expectations FILE  what is unsupported or known to fail\n"
    "                       (default: NAME.conformance beside FILE.so)\n"
    "  --timeout SECONDS    for one test (default 120)\n"
    "  --json FILE          the report; - is standard output\n"
    "  --parity             instead, compares every op and format with the reference\n"
    "  --list               the suites and what each is about\n"
    "  --help               this text\n\n"
    "Exits with 0 passed, 1 failed, 2 usage, 22 the loader would reject the file, 77 nothing to\n"
    "run: there is no device.\n";

const std::vector<std::string>& suite_names() {
  static const std::vector<std::string> names = {"lint",    "abi",       "ops",        "sizes",
                                                 "program", "sequences", "robustness", "hygiene",
                                                 "threads", "lifecycle", "unload"};
  return names;
}

std::vector<std::string> suites_of_level(const std::string& level) {
  const std::vector<std::string>& all = suite_names();
  if (level == "bronze") return {all.begin(), all.begin() + 8};
  if (level == "silver") return {all.begin(), all.begin() + 10};
  if (level == "gold") return all;
  return {};
}

namespace {

bool read_number(std::string_view text, uint32_t& out) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

// Takes one option with a value; false if it is none of ours.
bool take(options& o, const std::string& name, const std::string& value) {
  uint32_t number = 0;
  const auto numeric = [&](uint32_t low, uint32_t high) {
    if (!read_number(value, number) || number < low || number > high)
      o.problem = name + " takes a number from " + std::to_string(low) + " to " +
                  std::to_string(high) + ", found '" + value + "'";
    return number;
  };
  if (name == "--suite") {
    if (std::ranges::find(suite_names(), value) == suite_names().end())
      o.problem = "there is no suite '" + value + "'; --list names them";
    o.suites.push_back(value);
  } else if (name == "--test") {
    // Each suite is a process, and runs what is its own.
    const std::string suite = value.substr(0, value.find('.'));
    if (std::ranges::find(suite_names(), suite) == suite_names().end() || suite == value ||
        value.find_first_of(":-") != std::string::npos)
      o.problem = "--test takes SUITE.TEST, where * is anything, found '" + value + "'";
    o.tests.push_back(value);
    if (std::ranges::find(o.suites, suite) == o.suites.end()) o.suites.push_back(suite);
  } else if (name == "--level") {
    if (suites_of_level(value).empty())
      o.problem = "--level takes bronze, silver or gold, found '" + value + "'";
    o.level = value;
  } else if (name == "--device") {
    o.device = numeric(0, 4095);
  } else if (name == "--timeout") {
    o.timeout_s = numeric(1, 86'400);
  } else if (name == "--set") {
    const auto equals = value.find('=');
    if (equals == std::string::npos || equals == 0)
      o.problem = "--set takes KEY=VALUE, found '" + value + "'";
    else
      o.settings.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  } else if (name == "--expectations") {
    o.expectations = value;
  } else if (name == "--json") {
    o.json = value;
  } else if (name == "--role") {
    o.role = value;
  } else if (name == "--filter") {
    o.filter = value;
  } else if (name == "--channel") {
    o.channel = static_cast<int>(numeric(3, 1'048'576));
  } else {
    return false;
  }
  return true;
}

}  // namespace

options read_options(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc && o.problem.empty(); ++i) {
    std::string word = argv[i];
    if (word == "--parity") {
      o.parity = true;
    } else if (word == "--list") {
      o.list = true;
    } else if (word == "--help" || word == "-h") {
      o.help = true;
    } else if (word.starts_with("--")) {
      std::string value;
      const auto equals = word.find('=');
      const bool joined = equals != std::string::npos;
      if (joined) {
        value = word.substr(equals + 1);
        word.resize(equals);
      } else if (i + 1 < argc) {
        value = argv[i + 1];
      } else {
        o.problem = word + " takes a value, or is not known; see --help";
        break;
      }
      if (!take(o, word, value)) o.problem = "unknown option " + word + "; see --help";
      if (!joined) ++i;
    } else if (!o.file.empty()) {
      o.problem = "one FILE.so is expected, found '" + o.file + "' and '" + word + "'";
    } else {
      o.file = word;
    }
  }
  if (o.problem.empty() && o.file.empty() && !o.help && !o.list)
    o.problem = "the plugin is missing; see --help";
  if (o.problem.empty() && !o.level.empty() && !o.suites.empty())
    o.problem = "--level names its suites: leave --suite and --test out";
  return o;
}

std::vector<std::string> child_arguments(const options& o, const std::string& role,
                                         const std::string& filter, int channel) {
  std::vector<std::string> out = {"--role",    role,
                                  "--filter",  filter,
                                  "--device",  std::to_string(o.device),
                                  "--timeout", std::to_string(o.timeout_s),
                                  "--channel", std::to_string(channel)};
  for (const auto& [key, value] : o.settings) {
    out.emplace_back("--set");
    out.emplace_back(key).append("=").append(value);
  }
  out.push_back(o.file);
  return out;
}

}  // namespace bitnet::conformance
