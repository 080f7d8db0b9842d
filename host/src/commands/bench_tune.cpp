// bench --tune: makes the backend measure its settings now, and prints the measurements.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "commands/figures.hpp"
#include "model_files/find_model.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream from(text);
  std::vector<std::string> words;
  for (std::string word; from >> word;) words.push_back(word);
  return words;
}

// A row per tried value.
std::vector<ordered_json> rows_of(const nlohmann::json& session) {
  const std::vector<std::string> used = words_of(session.value("tuning", ""));
  std::vector<ordered_json> rows;
  for (const auto& f : session.value("tuning_figures", nlohmann::json::array())) {
    const std::string word = f.value("setting", "") + "=" + f.value("value", "");
    rows.push_back({{"device", session.value("device", "")},
                    {"setting", f.value("setting", "")},
                    {"value", f.value("value", "")},
                    {"figure", f.value("figure", 0.0)},
                    {"spread_pct", f.value("spread_pct", 0.0)},
                    {"used", std::ranges::find(used, word) != used.end()}});
  }
  return rows;
}

std::string as_markdown(const std::vector<ordered_json>& rows, const std::string& settings) {
  std::string out =
      "| device | setting | value | figure | spread, % | used |\n"
      "| --- | --- | ---: | ---: | ---: | --- |\n";
  for (const ordered_json& row : rows)
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", row["device"].get<std::string>(),
                       row["setting"].get<std::string>(), row["value"].get<std::string>(),
                       row["figure"].get<double>(), row["spread_pct"].get<double>(),
                       row["used"].get<bool>() ? "yes" : "");
  return out + fmt::format("\ntuned: {}\nbuild: bitnet {}\n", settings, bitnet_version());
}

}  // namespace

result<int> bench_tuning(const invocation& in, const std::string& wanted) {
  auto file = find_model(wanted, in.variables);
  if (!file) return std::unexpected(file.error());
  auto runtime = open_runtime(in);
  if (!runtime) return std::unexpected(runtime.error());
  constexpr uint32_t context = 64;  // tokens; none is computed
  auto model = open_model(in, runtime->get(), *file, context, true);
  if (!model) return std::unexpected(model.error());
  auto opened = open_session(in, model->get(), context, false);
  if (!opened) return std::unexpected(opened.error());
  auto session = session_report(opened->get());
  if (!session) return std::unexpected(session.error());
  const std::string settings = session->value("tuning", "");
  if (settings.empty())
    return fail(exit_code::usage, fmt::format("backend {} has no settings that are measured",
                                              session->value("backend", "")));
  const std::vector<ordered_json> rows = rows_of(*session);
  const std::string& format = in.set.text("output-format");
  if (auto done = print(format == "md" ? text::printable_lines(as_markdown(rows, settings))
                                       : rows_as(format, rows));
      !done)
    return std::unexpected(done.error());
  return exit_code::ok;
}

}  // namespace bitnet::host
