#pragma once
// Charts as SVG: each is an element that stands alone in a page, with the classes that the page's
// style has. Texts are escaped here.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitnet::host::measure {

// Text of HTML and of attributes: markup, control characters and bytes that are no UTF-8 escaped.
[[nodiscard]] std::string html_text(std::string_view text);
// Three digits or so: "1234", "56.7", "0.89".
[[nodiscard]] std::string short_number(double x);

struct bar {
  std::string label;
  double value = 0;
  std::vector<double> samples;               // dots beside it
  std::optional<double> from = {}, to = {};  // a line across its end
  int series = 0;                            // its colour
};
// Horizontal bars from 0, with `unit` behind each value. `limit`: a line at that value.
[[nodiscard]] std::string bar_chart(const std::vector<bar>& bars, std::string_view unit,
                                    std::optional<double> limit = {});

struct line_series {
  std::string label;
  std::vector<std::pair<double, double>> points;  // x ascending
};
// Both axes from 0.
[[nodiscard]] std::string line_chart(const std::vector<line_series>& all, std::string_view x_name,
                                     std::string_view y_name);

// A step that divides 0 to `most` in 3 to 8 parts: 1, 2 or 5 times a power of ten.
[[nodiscard]] double tick_step(double most);

}  // namespace bitnet::host::measure
