#include "chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "../figure/axis.h"
#include "html.h"

namespace reel::logging {

namespace {

// The size of a chart and of the plane within its axes, in units of the SVG; the page's script has them, too.
constexpr double chart_width = 460, chart_height = 280;
constexpr double plane_left = 58, plane_top = 12, plane_right = 448, plane_bottom = 250;
constexpr int x_ticks = 5, y_ticks = 5;

double chart_x(double position) { return plane_left + position * (plane_right - plane_left); }
double chart_y(double position) { return plane_bottom - position * (plane_bottom - plane_top); }

std::string svg_head(const std::string& name, const std::string& description) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"><title>{}</title><desc>{}</desc>",
                     chart_width, chart_height, html_text(name), html_text(name), html_text(description));
}

std::string svg_axes(const Axis& x_axis, const Axis& y_axis) {
  std::string svg = "<g class=\"axes\">";
  for (const Axis::Tick& tick : y_axis.ticks())
    svg += fmt::format("<path d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
                       plane_left, chart_y(tick.position), plane_right, plane_left - 6, chart_y(tick.position) + 4,
                       html_text(tick.label));
  for (const Axis::Tick& tick : x_axis.ticks())
    svg += fmt::format("<path d=\"M{:.1f} {}V{}\"/><text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                       chart_x(tick.position), plane_top, plane_bottom, chart_x(tick.position), plane_bottom + 17,
                       html_text(tick.label));
  return svg + "</g>";
}

// The path of a curve, which breaks where a value cannot be shown.
std::string path_of(const std::vector<At<double>>& points, const Axis& x_axis, const Axis& y_axis) {
  std::string path;
  bool joined = false;
  for (const At<double>& point : points) {
    double y = y_axis.position(point.value);
    if (std::isfinite(y))
      path += fmt::format("{}{:.1f} {:.1f}", joined ? 'L' : 'M',
                          chart_x(x_axis.position(static_cast<double>(point.step))), chart_y(y));
    joined = std::isfinite(y);
  }
  return path;
}

// Marks where values are NaN or infinite, at the lower edge of the plane or, for +∞, at the upper one.
std::string marks_of(const ChartCurve& curve, const Axis& x_axis) {
  std::string svg;
  for (const At<double>& point : curve.points) {
    if (std::isfinite(point.value)) continue;
    bool is_above = point.value > 0;
    svg += fmt::format("<text class=\"mark c{}\" x=\"{:.1f}\" y=\"{}\">{}</text>", curve.run % 7,
                       chart_x(x_axis.position(static_cast<double>(point.step))),
                       is_above ? plane_top + 8 : plane_bottom - 3,
                       std::isnan(point.value) ? "×"
                       : is_above              ? "▲"
                                               : "▼");
  }
  return svg;
}

std::string description_of(const std::vector<ChartCurve>& curves, const std::vector<std::string>& runs) {
  std::string text;
  for (const ChartCurve& curve : curves)
    text += fmt::format("{}{}: {} at step {}", text.empty() ? "" : "; ", runs[curve.run],
                        short_number(curve.points.back().value), curve.points.back().step);
  return text;
}

constexpr std::size_t value_rows = 36, most_columns = 64;
using Column = std::array<double, value_rows>;

// The share of the elements in each row of values between low and high.
Column shares_of(const Histogram& histogram, double low, double high) {
  Column column{};
  double before = histogram.min, width = (high - low) / value_rows;
  auto row_of = [&](double value) { return std::clamp((value - low) / width, 0.0, static_cast<double>(value_rows)); };
  for (std::size_t i = 0; i < histogram.limits.size(); ++i) {
    // The first bucket begins at the least value, and the last ends at the largest.
    double from = row_of(before), to = row_of(std::min(histogram.limits[i], histogram.max));
    double share = histogram.in_bucket[i] / static_cast<double>(std::max<std::int64_t>(histogram.count, 1));
    before = histogram.limits[i];
    if (!(share > 0) || !std::isfinite(from) || !std::isfinite(to)) continue;
    auto first = std::min(static_cast<std::size_t>(from), value_rows - 1);
    auto last = std::min(static_cast<std::size_t>(std::max(from, to)), value_rows - 1);
    for (std::size_t row = first; row <= last; ++row) {
      double overlap = std::min(to, row + 1.0) - std::max(from, static_cast<double>(row));
      column[row] += to > from ? share * std::max(overlap, 0.0) / (to - from) : row == first ? share : 0;
    }
  }
  return column;
}

}  // namespace

std::vector<At<double>> thinned(const std::vector<At<double>>& points, std::size_t most) {
  if (points.size() <= most) return points;
  std::vector<At<double>> kept;
  std::size_t parts = std::max<std::size_t>(most / 2, 1);
  for (std::size_t part = 0; part < parts; ++part) {
    auto begin = points.begin() + static_cast<std::ptrdiff_t>(points.size() * part / parts);
    auto end = points.begin() + static_cast<std::ptrdiff_t>(points.size() * (part + 1) / parts);
    // Values that are not finite come first in this order, so that they are kept.
    auto rank = [](const At<double>& point) {
      return std::isfinite(point.value) ? point.value : -std::numeric_limits<double>::infinity();
    };
    auto [least, largest] =
        std::minmax_element(begin, end, [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    kept.push_back(std::min(least, largest)[0]);
    if (least != largest) kept.push_back(std::max(least, largest)[0]);
  }
  if (kept.back().step != points.back().step) kept.push_back(points.back());
  return kept;
}

std::string curves_svg(const std::string& name, const std::vector<ChartCurve>& curves,
                       const std::vector<std::string>& runs) {
  Axis::Range x_range, y_range;
  for (const ChartCurve& curve : curves)
    for (const At<double>& point : curve.points) {
      x_range.add(static_cast<double>(point.step));
      y_range.add(point.value);
    }
  Axis x_axis(x_range, 0.01, x_ticks, Axis::Ticks::at_integers), y_axis(y_range, 0.05, y_ticks);
  std::string svg = svg_head(name, description_of(curves, runs)) + svg_axes(x_axis, y_axis) + "<g class=\"curves\">";
  for (const ChartCurve& curve : curves) {
    std::string kind = fmt::format("c{} d{}", curve.run % 7, curve.run / 7 % 4);
    svg += fmt::format("<path class=\"{}\" d=\"{}\"/>", kind, path_of(curve.points, x_axis, y_axis));
    if (curve.points.size() == 1 && std::isfinite(curve.points[0].value))
      svg += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", kind,
                         chart_x(x_axis.position(static_cast<double>(curve.points[0].step))),
                         chart_y(y_axis.position(curve.points[0].value)));
    svg += marks_of(curve, x_axis);
  }
  return svg + "</g></svg>";
}

std::string histograms_svg(const std::string& name, const std::vector<At<Histogram>>& histograms) {
  Axis::Range value_range;
  for (const At<Histogram>& at : histograms) {
    value_range.add(at.value.min);
    value_range.add(at.value.max);
  }
  Axis y_axis(value_range, 0, y_ticks);
  double low = y_axis.value(0), high = y_axis.value(1);
  std::size_t stride = (histograms.size() + most_columns - 1) / most_columns;
  std::vector<Column> columns;
  Axis::Range step_range;
  double largest = 0;
  for (std::size_t i = 0; i < histograms.size(); i += stride) {
    columns.push_back(shares_of(histograms[i].value, low, high));
    step_range.add(static_cast<double>(histograms[i].step));
    for (double share : columns.back()) largest = std::max(largest, share);
  }
  // One path for each of a few shades is shorter than an element for each cell.
  constexpr std::size_t shades = 8;
  std::array<std::string, shades> paths;
  // A column reaches half way to its neighbours.
  auto count = static_cast<double>(columns.size());
  Axis x_axis(step_range, count > 1 ? 0.5 / (count - 1) : 0, x_ticks, Axis::Ticks::at_integers);
  std::vector<double> edges = {plane_left};
  for (std::size_t column = 1; column < columns.size(); ++column) {
    auto middle_of = [&](std::size_t i) { return x_axis.position(static_cast<double>(histograms[i * stride].step)); };
    edges.push_back(chart_x((middle_of(column - 1) + middle_of(column)) / 2));
  }
  edges.push_back(plane_right);
  double height = (plane_bottom - plane_top) / value_rows;
  for (std::size_t column = 0; column < columns.size(); ++column)
    for (std::size_t row = 0; row < value_rows; ++row) {
      double share = columns[column][row];
      if (!(share > 0)) continue;
      // The root, so that rare values are seen beside frequent ones.
      auto shade = static_cast<std::size_t>(std::sqrt(share / largest) * (shades - 1) + 0.5);
      paths[std::min(shade, shades - 1)] += fmt::format("M{:.1f} {:.1f}H{:.1f}v{:.1f}H{:.1f}z", edges[column],
                                                        plane_bottom - static_cast<double>(row + 1) * height,
                                                        edges[column + 1], height + 0.1, edges[column]);
    }
  std::string description = fmt::format("the distribution of values from {} to {}, at {} steps", short_number(low),
                                        short_number(high), columns.size());
  std::string svg = svg_head(name, description) + svg_axes(x_axis, y_axis) + "<g class=\"cells\">";
  for (std::size_t shade = 0; shade < shades; ++shade)
    if (!paths[shade].empty())
      svg += fmt::format("<path fill-opacity=\"{:.2f}\" d=\"{}\"/>",
                         0.06 + 0.94 * static_cast<double>(shade) / (shades - 1), paths[shade]);
  return svg + "</g></svg>";
}

}  // namespace reel::logging
