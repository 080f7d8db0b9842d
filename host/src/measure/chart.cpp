#include "measure/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/printable.hpp"

namespace bitnet::host::measure {
namespace {

// Sizes in drawing units; the page scales the drawing.
constexpr double chart_width = 860;
constexpr double label_width = 300;
constexpr double value_width = 110;
constexpr double bar_pitch = 28, bar_height = 14;
constexpr std::size_t longest_label = 46;  // characters that fit label_width
constexpr int n_colours = 6;

constexpr double line_height = 320, line_left = 70, line_right = 20, line_top = 16,
                 line_bottom = 46;

std::string colour_class(int series) {
  return fmt::format("s{}", series % n_colours);
}

// Cuts between UTF-8 characters.
std::string cut_label(std::string_view label) {
  std::size_t n = 0, at = 0;
  while (at < label.size() && n < longest_label) {
    ++at;
    while (at < label.size() && (static_cast<unsigned char>(label[at]) & 0xC0U) == 0x80U) ++at;
    ++n;
  }
  return at == label.size() ? std::string(label) : std::string(label.substr(0, at)) + "…";
}

double largest_of(const std::vector<bar>& bars, std::optional<double> limit) {
  double out = limit.value_or(0);
  for (const bar& one : bars) {
    out = std::max({out, one.value, one.to.value_or(0)});
    for (const double sample : one.samples) out = std::max(out, sample);
  }
  return out > 0 ? out : 1;
}

std::string line_of(double x1, double y1, double x2, double y2, std::string_view kind) {
  return fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)"
                     "\n",
                     x1, y1, x2, y2, kind);
}

std::string text_at(double x, double y, std::string_view kind, std::string_view text) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="{}">{}</text>)"
                     "\n",
                     x, y, kind, html_text(text));
}

std::string one_bar(const bar& one, double top, double scale, std::string_view unit) {
  const double middle = top + bar_pitch / 2;
  const std::string value = short_number(one.value) + std::string(unit);
  std::string out =
      fmt::format("<g><title>{}: {}</title>\n", html_text(one.label), html_text(value));
  out += text_at(label_width - 10, middle + 4, "label", cut_label(one.label));
  out += fmt::format(
      R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="2" class="{}"/>)"
      "\n",
      label_width, middle - bar_height / 2, std::max(one.value * scale, 1.0), bar_height,
      colour_class(one.series));
  if (one.from && one.to) {
    const double left = label_width + *one.from * scale, right = label_width + *one.to * scale;
    out += line_of(left, middle, right, middle, "spread");
    for (const double x : {left, right}) out += line_of(x, middle - 5, x, middle + 5, "spread");
  }
  for (const double sample : one.samples)
    out += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.2" class="sample"/>)"
                       "\n",
                       label_width + sample * scale, middle);
  out += text_at(chart_width - value_width + 12, middle + 4, "value", value);
  return out + "</g>\n";
}

std::string begin_of(double height, std::string_view name) {
  return fmt::format(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">)"
                     "\n",
                     chart_width, height, html_text(name));
}

struct plane {
  double x_most = 1, y_most = 1;

  [[nodiscard]] double x(double value) const {
    return line_left + value / x_most * (chart_width - line_left - line_right);
  }
  [[nodiscard]] double y(double value) const {
    return line_height - line_bottom - value / y_most * (line_height - line_top - line_bottom);
  }
};

plane plane_of(const std::vector<line_series>& all) {
  double x = 0, y = 0;
  for (const line_series& one : all)
    for (const auto& [px, py] : one.points) {
      x = std::max(x, px);
      y = std::max(y, py);
    }
  return {x > 0 ? x : 1, y > 0 ? y * 1.08 : 1};
}

std::string axes_of(const plane& at, std::string_view x_name, std::string_view y_name) {
  std::string out;
  const double x_step = tick_step(at.x_most), y_step = tick_step(at.y_most);
  for (int i = 0; i * y_step <= at.y_most; ++i) {
    const double y = at.y(i * y_step);
    out += line_of(line_left, y, chart_width - line_right, y, "grid");
    out += text_at(line_left - 8, y + 4, "label", short_number(i * y_step));
  }
  for (int i = 0; i * x_step <= at.x_most; ++i)
    out +=
        text_at(at.x(i * x_step), line_height - line_bottom + 18, "tick", short_number(i * x_step));
  out += text_at((line_left + chart_width - line_right) / 2, line_height - 8, "tick", x_name);
  return out + text_at(8, 12, "value", y_name);
}

std::string series_of(const line_series& one, const plane& at, int number) {
  std::string points, dots;
  for (const auto& [px, py] : one.points) {
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", at.x(px), at.y(py));
    dots += fmt::format(
        R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" class="{}"><title>{}: {} at {}</title></circle>)"
        "\n",
        at.x(px), at.y(py), colour_class(number), html_text(one.label), short_number(py),
        short_number(px));
  }
  return fmt::format(R"(<polyline points="{}" class="line l{}"/>)"
                     "\n{}",
                     points, number % n_colours, dots);
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text::printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string short_number(double x) {
  const double size = std::abs(x);
  if (x == std::floor(x) && size < 1e6) return fmt::format("{:.0f}", x);
  if (size >= 1e6 || size < 1e-3) return fmt::format("{:.2e}", x);
  return size >= 100  ? fmt::format("{:.0f}", x)
         : size >= 10 ? fmt::format("{:.1f}", x)
         : size >= 1  ? fmt::format("{:.2f}", x)
                      : fmt::format("{:.3f}", x);
}

double tick_step(double most) {
  if (!(most > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(most)));
  for (const double step : {0.2, 0.5, 1.0})
    if (most / (step * power) <= 8) return step * power;
  return 2 * power;
}

std::string bar_chart(const std::vector<bar>& bars, std::string_view unit,
                      std::optional<double> limit) {
  const double height = bar_pitch * static_cast<double>(bars.size()) + 8;
  const double scale = (chart_width - label_width - value_width) / largest_of(bars, limit);
  std::string out = begin_of(height, "bars");
  double top = 4;
  for (const bar& one : bars) {
    out += one_bar(one, top, scale, unit);
    top += bar_pitch;
  }
  if (limit)
    out += line_of(label_width + *limit * scale, 0, label_width + *limit * scale, height, "limit");
  return out + "</svg>\n";
}

std::string line_chart(const std::vector<line_series>& all, std::string_view x_name,
                       std::string_view y_name) {
  const plane at = plane_of(all);
  std::string out = begin_of(line_height, y_name) + axes_of(at, x_name, y_name);
  std::string legend;
  int number = 0;
  for (const line_series& one : all) {
    out += series_of(one, at, number);
    legend += fmt::format(R"(<span><i class="k{}"></i>{}</span> )", number % n_colours,
                          html_text(one.label));
    ++number;
  }
  return out + "</svg>\n<p class=\"legend\">" + legend + "</p>\n";
}

}  // namespace bitnet::host::measure
