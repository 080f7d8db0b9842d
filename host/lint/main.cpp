// bitnet-backend-lint: what the loader would say about a plugin file, all at once, without running
// a byte of it.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bitnet/bitnet.h"
#include "files/standard_descriptors.hpp"
#include "text/printable.hpp"

namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

// As in docs/reference/exit-codes.md.
constexpr int clean = 0;
constexpr int unreadable = 1;
constexpr int wrong_usage = 2;
constexpr int rejected = 22;

constexpr const char* usage =
    "Usage: bitnet-backend-lint [--json] [--manifest FILE] FILE...\n\n"
    "Reports everything that is right and wrong with plugin files; nothing of them is run. Exits "
    "with\n"
    "0 if the loader would take all of them here, with 22 if it would reject one or the manifest\n"
    "says something else than its file, with 1 if one cannot be read.\n\n"
    "  --json           print JSON: {files: [...]}\n"
    "  --manifest FILE  the plugin's manifest: what it says, its hash, packages of libraries\n"
    "  -h, --help       this text\n";

void keep_report(void* user, bitnet_str text) {
  static_cast<std::string*>(user)->assign(text.data, text.size);
}

std::string dumped(const ordered_json& content) {
  return content.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// {file, ..., findings}, or {file, problem} if it cannot be read.
ordered_json lint(const std::string& file, const std::string& manifest) {
  bitnet_error err{};
  err.struct_size = sizeof err;
  std::string report;
  const bitnet_status status = bitnet_backend_lint(
      file.c_str(), manifest.empty() ? nullptr : manifest.c_str(), keep_report, &report, &err);
  if (status != BITNET_OK) return {{"file", file}, {"problem", err.message}};
  return ordered_json::parse(report);
}

std::string as_text(const ordered_json& report) {
  const std::string file = report.value("file", "");
  if (report.contains("problem")) return fmt::format("{}: {}\n", file, report.value("problem", ""));
  std::string out = file + "\n";
  for (const ordered_json& one : report.value("findings", ordered_json::array())) {
    const std::string level = one.value("level", "");
    const std::string code = one.value("code", "");
    out += fmt::format("  {:<8} {:<17} {}{}\n", level, one.value("check", ""),
                       one.value("text", ""), level == "ok" ? "" : fmt::format(" [{}]", code));
    if (const std::string hint = one.value("hint", ""); !hint.empty())
      out += fmt::format("  {:<8} {:<17} -> {}\n", "", "", hint);
  }
  const auto errors = report.value("errors", uint64_t{0});
  const auto warnings = report.value("warnings", uint64_t{0});
  return out + fmt::format("  {} error{}, {} warning{}\n", errors, errors == 1 ? "" : "s", warnings,
                           warnings == 1 ? "" : "s");
}

int verdict(const std::vector<ordered_json>& reports) {
  int out = clean;
  for (const ordered_json& one : reports) {
    if (one.value("errors", uint64_t{0}) != 0) return rejected;
    if (one.contains("problem")) out = unreadable;
  }
  return out;
}

struct request {
  bool help = false;
  bool json = false;
  std::string manifest;
  std::vector<std::string> files;
};

// Throws po::error for words that are no request.
request read(int argc, char** argv) {
  request out;
  po::options_description known;
  known.add_options()("help,h", po::bool_switch(&out.help))("json", po::bool_switch(&out.json))(
      "manifest", po::value(&out.manifest));
  namespace style = po::command_line_style;
  const auto words = po::command_line_parser(argc, argv)
                         .options(known)
                         .style(style::unix_style & ~style::allow_guessing)
                         .run();
  po::variables_map values;
  po::store(words, values);
  po::notify(values);
  for (const po::option& one : words.options)
    if (one.string_key.empty()) out.files.push_back(one.value.front());
  return out;
}

// What Program_options says of the words, in the words of the program's other messages.
std::string why(const po::error& e) {
  if (const auto* unknown = dynamic_cast<const po::unknown_option*>(&e))
    return unknown->get_option_name() + " is no option that it has";
  const auto* wrong = dynamic_cast<const po::invalid_command_line_syntax*>(&e);
  if (wrong == nullptr) return e.what();
  return wrong->get_option_name() + (wrong->kind() == po::invalid_syntax::extra_parameter
                                         ? " takes no value"
                                         : " needs a value");
}

int run(int argc, char** argv) {
  const request given = read(argc, argv);
  if (given.help) {
    fmt::print("{}", usage);
    return std::fflush(stdout) == 0 ? clean : unreadable;
  }
  if (given.files.empty()) {
    fmt::print(stderr, "{}", usage);
    return wrong_usage;
  }

  std::vector<ordered_json> reports;
  for (const std::string& file : given.files) reports.push_back(lint(file, given.manifest));
  if (given.json)
    fmt::print("{}", dumped({{"files", reports}}));
  else
    for (const ordered_json& one : reports)
      fmt::print(one.contains("problem") ? stderr : stdout, "{}",
                 bitnet::text::printable_lines(as_text(one)));
  return std::fflush(stdout) == 0 ? verdict(reports) : unreadable;
}

}  // namespace

int main(int argc, char** argv) {
  if (!bitnet::files::open_standard_descriptors()) return unreadable;
  try {
    return run(argc, argv);
  } catch (const po::error& e) {
    fmt::print(stderr, "bitnet-backend-lint: {}; see --help\n", bitnet::text::printable(why(e)));
    return wrong_usage;
  } catch (const std::exception& e) {
    fmt::print(stderr, "bitnet-backend-lint: {}\n", e.what());
    return unreadable;
  }
}
