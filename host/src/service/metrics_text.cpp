#include "service/metrics_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/utf8.hpp"

namespace bitnet::host {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Inf" : "+Inf";
  return fmt::format("{}", value);  // the shortest text that reads back as the same number
}

void add_escaped(std::string& to, std::string_view text, bool is_label) {
  for (const char c : text) {
    if (c == '\\')
      to += "\\\\";
    else if (c == '\n')
      to += "\\n";
    else if (c == '"' && is_label)
      to += "\\\"";
    else
      to += c;
  }
}

}  // namespace

void histogram::add(double value) {
  const auto at = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<std::size_t>(at - bounds_.begin())];
  sum_ += value;
}

std::vector<uint64_t> histogram::cumulated() const {
  std::vector<uint64_t> out;
  out.reserve(counts_.size());
  uint64_t n = 0;
  for (const uint64_t one : counts_) out.push_back(n += one);
  return out;
}

void metrics_text::begin(std::string_view name, std::string_view type, std::string_view help) {
  const auto known = std::ranges::find(families_, name, &family::name);
  at_ = static_cast<std::size_t>(known - families_.begin());
  if (known != families_.end()) return;
  std::string header = fmt::format("# HELP {} ", name);
  add_escaped(header, help, false);
  header += fmt::format("\n# TYPE {} {}\n", name, type);
  families_.push_back({std::string(name), std::move(header)});
}

std::string metrics_text::text() const {
  std::string out;
  for (const family& one : families_) out += one.text;
  return out;
}

void metrics_text::line(std::string_view suffix, const metric_labels& more,
                        std::string_view value) {
  std::string& to = families_[at_].text;
  to.append(families_[at_].name).append(suffix);
  char between = '{';
  for (const metric_labels* labels : {&std::as_const(common_), &more})
    for (const auto& [name, content] : *labels) {
      to += between;
      to.append(name).append("=\"");
      add_escaped(to, content, true);
      to += '"';
      between = ',';
    }
  if (between == ',') to += '}';
  to.append(" ").append(value).append("\n");
}

void metrics_text::sample(double value, const metric_labels& more) {
  line("", more, number_text(value));
}

void metrics_text::samples(const histogram& of, double most) {
  std::vector<uint64_t> counts = of.cumulated();
  const uint64_t n = counts.back();
  std::span<const double> bounds = of.bounds();
  if (most > 0)
    bounds = bounds.first(
        static_cast<std::size_t>(std::ranges::upper_bound(bounds, most) - bounds.begin()));
  counts.resize(bounds.size() + 1);
  counts.back() = n;
  samples(bounds, counts, of.sum());
}

void metrics_text::samples(std::span<const double> bounds, std::span<const uint64_t> counts,
                           double sum) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool is_last = i == bounds.size();
    line("_bucket", {{"le", is_last ? "+Inf" : number_text(bounds[i])}},
         fmt::format("{}", counts[i]));
  }
  line("_sum", {}, number_text(sum));
  line("_count", {}, fmt::format("{}", counts.back()));
}

}  // namespace bitnet::host
