// bench compare A B: judges whether the second result is faster than the first. It reads the files
// and measures nothing.
#include <fmt/format.h>

#include "basic/output.hpp"
#include "commands/commands.hpp"
#include "commands/figures.hpp"
#include "commands/prompt.hpp"
#include "judge/bench_results.hpp"

namespace bitnet::host {
namespace {

using judge::compared_row;
using judge::comparison;

result<std::vector<judge::bench_row>> read_results(const std::string& file) {
  const auto text = file_bytes(file);
  if (!text) return std::unexpected(text.error());
  auto rows = judge::read_bench(*text);
  if (!rows) return fail(exit_code::usage, fmt::format("{}: {}", file, rows.error()));
  if (rows->empty()) return fail(exit_code::usage, fmt::format("{} has no results", file));
  return *std::move(rows);
}

ordered_json comparison_row(const compared_row& row) {
  return {{"test", row.a.name},
          {"unit", row.a.per_second ? "tokens/s" : "calls/s"},
          {"a_median", median(row.a.speeds)},
          {"b_median", median(row.b.speeds)},
          {"a_samples", row.a.speeds.size()},
          {"b_samples", row.b.speeds.size()},
          {"a_spread", row.a.spread()},
          {"b_spread", row.b.spread()},
          {"ratio", row.ratio.ratio},
          {"ratio_low", row.ratio.low},
          {"ratio_high", row.ratio.high},
          {"confidence", row.ratio.confidence},
          {"u", row.test.u},
          {"p", row.test.p},
          {"p_exact", row.test.exact},
          {"verdict", judge::text_of(row.says)},
          {"doubts", row.doubts},
          {"notes", row.notes}};
}

std::string comparison_table(const comparison& all) {
  std::string out =
      "| test | A | B | B / A | interval | p | verdict |\n"
      "| --- | ---: | ---: | ---: | --- | ---: | --- |\n";
  for (const compared_row& row : all.rows)
    out += fmt::format(
        "| {} | {:.2f} | {:.2f} | {:.3f} | {:.3f} to {:.3f} ({:.1f} %) | {:.4f} | {} |\n",
        row.a.name, median(row.a.speeds), median(row.b.speeds), row.ratio.ratio, row.ratio.low,
        row.ratio.high, 100 * row.ratio.confidence, row.test.p, judge::text_of(row.says));
  out +=
      "\nA and B: medians, tokens or calls per second. Mann-Whitney U test, two-sided, at 5 %.\n";
  for (const compared_row& row : all.rows)
    for (const std::string& note : row.notes) out += fmt::format("{}: {}\n", row.a.name, note);
  return out;
}

std::string formatted_comparison(const std::string& format, const comparison& all) {
  if (format == "md") return comparison_table(all);
  std::vector<ordered_json> rows;
  rows.reserve(all.rows.size());
  for (const compared_row& row : all.rows) rows.push_back(comparison_row(row));
  return rows_as(format, rows);
}

// Prints reasons against a comparison, one per line.
void print_doubts(const invocation& in, const comparison& all) {
  for (const compared_row& row : all.rows)
    for (const std::string& doubt : row.doubts)
      in.out.warning(fmt::format("{}: {}", row.a.name, doubt));
}

}  // namespace

result<int> bench_compare(const invocation& in, const std::vector<std::string>& files) {
  if (files.size() != 2)
    return fail(exit_code::usage,
                "compare takes two files of `bitnet bench -o json` or jsonl: A and B");
  const auto a = read_results(files[0]);
  if (!a) return std::unexpected(a.error());
  const auto b = read_results(files[1]);
  if (!b) return std::unexpected(b.error());
  const comparison all = judge::compare_results(*a, *b);
  for (const std::string& name : all.only_a)
    in.out.note(fmt::format("only in {}: {}", files[0], name));
  for (const std::string& name : all.only_b)
    in.out.note(fmt::format("only in {}: {}", files[1], name));
  if (all.rows.empty())
    return fail(exit_code::no_comparison,
                fmt::format("{} and {} have no configuration in common", files[0], files[1]));
  print_doubts(in, all);
  if (all.doubtful() && !in.set.flag("force"))
    return fail(exit_code::no_comparison,
                "the results cannot be compared, for the reasons above; measure again in the same "
                "minutes on one quiet machine, or compare all the same with --force");
  const std::string out = formatted_comparison(in.set.text("output-format"), all);
  if (auto done = print(out); !done) return std::unexpected(done.error());
  return all.any_slower() ? exit_code::slower : exit_code::ok;
}

}  // namespace bitnet::host
