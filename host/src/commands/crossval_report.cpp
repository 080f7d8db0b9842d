#include "commands/crossval_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands/eval_commands.hpp"
#include "text/printable.hpp"

namespace bitnet::host {
namespace {

using nlohmann::ordered_json;
using compared_prompt = crossval::prompt_comparison::outcome;

ordered_json build_json(const crossval::build& of, const std::string& version) {
  return {{"library", of.library},
          {"flavour", of.flavour()},
          {"cuda", of.cuda},
          {"tier", of.tier},
          {"version", version}};
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json prompt_json(std::size_t number, const compared_prompt& of) {
  ordered_json out = {{"prompt", number},
                      {"agrees", of.agrees()},
                      {"tokens", {{"ours", of.n_ours}, {"theirs", of.n_theirs}}},
                      {"first_other_token", or_null(of.first_other_token)},
                      {"positions", of.n_compared},
                      {"min_cosine", or_null(of.min_cosine)},
                      {"min_cosine_at", of.min_cosine ? ordered_json(of.min_cosine_at) : nullptr},
                      {"max_abs", or_null(of.max_abs)},
                      {"max_abs_at", of.max_abs ? ordered_json(of.max_abs_at) : nullptr},
                      {"same_top", of.n_same_top},
                      {"first_other_top", or_null(of.first_other_top)},
                      {"first_divergence", or_null(of.first_beyond)},
                      {"first_not_finite", or_null(of.first_not_finite)}};
  return out;
}

ordered_json report_json(const crossval_report& report) {
  ordered_json prompts = ordered_json::array();
  for (std::size_t i = 0; i < report.prompts.size(); ++i)
    prompts.push_back(prompt_json(i, report.prompts[i]));
  ordered_json other = build_json(report.other, report.library_version);
  other["model"] = report.other_model.description;
  return {{"model", report.model},
          {"version", bitnet_version()},
          {"device", report.device},
          {"other", other},
          {"n_vocab", report.other_model.n_vocab},
          {"bounds",
           {{"min_cosine", report.within.min_cosine},
            {"max_abs", std::isfinite(report.within.max_abs) ? ordered_json(report.within.max_abs)
                                                             : ordered_json()}}},
          {"agrees", report.agrees()},
          {"prompts", prompts}};
}

std::string position(const std::optional<std::size_t>& at) {
  return at ? std::to_string(*at) : "-";
}

std::string number_at(const std::optional<double>& value, std::size_t at, const char* format) {
  return value ? fmt::format("{} at {}", fmt::format(fmt::runtime(format), *value), at) : "-";
}

std::string prompt_row(std::size_t number, const compared_prompt& of) {
  const std::string tokens = of.n_ours == of.n_theirs
                                 ? std::to_string(of.n_ours)
                                 : fmt::format("{} / {}", of.n_ours, of.n_theirs);
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} of {} | {} | {} |\n", number, tokens,
                     position(of.first_other_token), of.n_compared,
                     number_at(of.min_cosine, of.min_cosine_at, "{:.6f}"),
                     number_at(of.max_abs, of.max_abs_at, "{:.4g}"), of.n_same_top, of.n_compared,
                     position(of.first_beyond), of.agrees() ? "yes" : "no");
}

std::string as_table(const crossval_report& report) {
  std::string out = fmt::format("{} by {}, beside {} ({}{})\n{}\n\n", report.model, report.device,
                                report.other.flavour(), report.library_version,
                                report.other.cuda ? ", with CUDA" : "", report.other.library);
  out +=
      "| prompt | tokens | first other token | positions | least cosine | largest distance "
      "| same top token | first divergence | agrees |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < report.prompts.size(); ++i) out += prompt_row(i, report.prompts[i]);
  const auto n = std::ranges::count_if(report.prompts, &compared_prompt::agrees);
  out += fmt::format("\n{} of {} prompts agree: the same tokens, and cosines of at least {}", n,
                     report.prompts.size(), report.within.min_cosine);
  if (std::isfinite(report.within.max_abs))
    out += fmt::format(", and distances of at most {}", report.within.max_abs);
  return text::printable_lines(out + "\n");
}

ordered_json find_json(const find_report& report) {
  ordered_json searched = ordered_json::array();
  for (const crossval::searched_folder& one : report.found.searched)
    searched.push_back({{"folder", one.path}, {"tier", one.tier}, {"verdict", one.verdict}});
  ordered_json out = {{"origin", report.origin}, {"searched", searched}, {"found", nullptr}};
  if (report.found.found) {
    out["found"] = build_json(*report.found.found, report.library_version);
    out["found"]["problem"] =
        report.problem.empty() ? ordered_json() : ordered_json(report.problem);
  }
  return out;
}

std::string as_table(const find_report& report) {
  std::string out = fmt::format("searched, by {}\n", report.origin);
  for (const crossval::searched_folder& one : report.found.searched)
    out += fmt::format("  {}  {}: {}\n", one.tier == 0 ? "-" : std::to_string(one.tier), one.path,
                       one.verdict);
  if (!report.found.found) return text::printable_lines(out + "found nothing\n");
  const crossval::build& found = *report.found.found;
  out += fmt::format("{}{}: {}\n", found.flavour(), found.cuda ? " with CUDA" : "", found.library);
  out += report.problem.empty() ? fmt::format("it can be used: {}\n", report.library_version)
                                : fmt::format("it cannot be used: {}\n", report.problem);
  return text::printable_lines(out);
}

// Measured values for bounds that have no number to compare; they never pass.
constexpr double no_cosine = -2;
constexpr double no_distance = std::numeric_limits<double>::max();

nlohmann::json gate(const char* name, double limit, double measured, bool passed) {
  return {{"name", name}, {"limit", limit}, {"measured", measured}, {"passed", passed}};
}

}  // namespace

nlohmann::json parity_facts(const crossval_report& report) {
  double cosine = 1;
  double distance = 0;
  int other_tokens = 0;
  for (const compared_prompt& one : report.prompts) {
    cosine =
        std::min(cosine, one.first_not_finite ? no_cosine : one.min_cosine.value_or(no_cosine));
    distance =
        std::max(distance, one.first_not_finite ? no_distance : one.max_abs.value_or(no_distance));
    if (one.first_other_token) ++other_tokens;
  }
  const crossval::bounds& within = report.within;
  nlohmann::json gates = {
      gate("min-cosine", within.min_cosine, cosine, cosine >= within.min_cosine),
      gate("max-prompts-with-other-tokens", 0, other_tokens, other_tokens == 0)};
  if (std::isfinite(within.max_abs))
    gates.push_back(gate("max-abs", within.max_abs, distance, distance <= within.max_abs));
  return {{"program", {{"command", "crossval"}, {"parity", nlohmann::json(report_json(report))}}},
          {"gates", std::move(gates)}};
}

bool crossval_report::agrees() const {
  return std::ranges::all_of(prompts, &compared_prompt::agrees);
}

std::string report_text(const crossval_report& report, const std::string& format) {
  return format == "json" ? eval_line(report_json(report)) : as_table(report);
}

std::string report_text(const find_report& report, const std::string& format) {
  return format == "json" ? eval_line(find_json(report)) : as_table(report);
}

}  // namespace bitnet::host
