#pragma once
// Prometheus' text form, version 0.0.4: HELP, TYPE, samples.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitnet::host {

// Name and value; values may hold any text, names are fixed.
using metric_labels = std::vector<std::pair<std::string_view, std::string>>;

inline constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

// Counts by upper bound. Not for several threads.
class histogram {
 public:
  // `bounds` rise; they live as long as the histogram.
  explicit histogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}
  void add(double value);

  [[nodiscard]] std::span<const double> bounds() const { return bounds_; }
  // Of values that are at most bounds()[i]; the last of all values.
  [[nodiscard]] std::vector<uint64_t> cumulated() const;
  [[nodiscard]] double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

class metrics_text {
 public:
  // Labels of each sample that follows.
  void set_common(metric_labels common) { common_ = std::move(common); }

  // The samples that follow have this name. HELP and TYPE are written once for each name, and all
  // of its samples behind them. `type`: counter, gauge, histogram.
  void begin(std::string_view name, std::string_view type, std::string_view help);
  // Of the name that was begun.
  void sample(double number, const metric_labels& more = {});
  // Buckets up to `most`, and the one of all values; 0: all of them.
  void samples(const histogram& of, double most = 0);
  // `counts`: cumulated, of values up to each bound, and of all.
  void samples(std::span<const double> bounds, std::span<const uint64_t> counts, double sum);

  [[nodiscard]] std::string text() const;

 private:
  void line(std::string_view suffix, const metric_labels& more, std::string_view number);

  struct family {
    std::string name, text;
  };

  metric_labels common_;
  std::vector<family> families_;  // in the order in which they were begun
  std::size_t at_ = 0;            // the family that was begun last
};

}  // namespace bitnet::host
