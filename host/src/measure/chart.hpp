#pragma once
// SVG charts. Each is a self-contained element that uses the CSS classes of the page. Text is
// escaped here.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host::measure {

// Escapes text for HTML and attributes: markup, control characters and invalid UTF-8.
[[nodiscard]] std::string html_text(std::string_view text);
// About three digits: "1234", "56.7", "0.89".
[[nodiscard]] std::string short_number(double x);

struct bar {
  std::string label;
  double value = 0;
  std::vector<double> samples;               // drawn as dots beside the bar
  std::optional<double> from = {}, to = {};  // an error line across the bar's end
  int series = 0;                            // index of the colour
};
// Horizontal bars from 0, with `unit` after each value. `limit`: draws a line at that value.
[[nodiscard]] std::string bar_chart(const std::vector<bar>& bars, std::string_view unit,
                                    std::optional<double> limit = {});

struct line_series {
  std::string label;
  std::vector<std::pair<double, double>> points;  // x ascending
};
// Both axes begin at 0.
[[nodiscard]] std::string line_chart(const std::vector<line_series>& all, std::string_view x_name,
                                     std::string_view y_name);

// A tick step, 1, 2 or 5 times a power of ten, that divides 0 to `most` into 3 to 8 parts.
[[nodiscard]] double tick_step(double most);

}  // namespace bitnet::host::measure
