#pragma once
// Writes Prometheus' text format, version 0.0.4: HELP, TYPE, samples.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitnet::host {

// Pairs of name and value; values may hold any text, names are fixed.
using metric_labels = std::vector<std::pair<std::string_view, std::string>>;

inline constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

// Counts of values by upper bound. Not for several threads.
class histogram {
 public:
  // `bounds` are ascending and outlive the histogram.
  explicit histogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}
  void add(double value);

  [[nodiscard]] std::span<const double> bounds() const { return bounds_; }
  // [i]: number of values up to bounds()[i]; the last element counts all values.
  [[nodiscard]] std::vector<uint64_t> cumulated() const;
  [[nodiscard]] double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

class metrics_text {
 public:
  // Adds these labels to each sample that follows.
  void set_common(metric_labels common) { common_ = std::move(common); }

  // Starts a metric; the following samples belong to it. HELP and TYPE are written once per name,
  // followed by all of its samples. `type`: counter, gauge or histogram.
  void begin(std::string_view name, std::string_view type, std::string_view help);
  // Adds a sample of the current metric.
  void sample(double number, const metric_labels& more = {});
  // Adds the buckets up to `most` and the total; `most` 0: all buckets.
  void samples(const histogram& of, double most = 0);
  // `counts`: cumulated, for each bound and in total.
  void samples(std::span<const double> bounds, std::span<const uint64_t> counts, double sum);

  [[nodiscard]] std::string text() const;

 private:
  void line(std::string_view suffix, const metric_labels& more, std::string_view number);

  struct family {
    std::string name, text;
  };

  metric_labels common_;
  std::vector<family> families_;  // in the order of begin()
  std::size_t at_ = 0;            // index of the current metric
};

}  // namespace bitnet::host
