#include "figure.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <reel/logging/writer.h>
#include <reel/no_record.h>

#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "../../ops/if_needed.h"
#include "../tag.h"
#include "../writer_files.h"
#include "axis.h"
#include "canvas.h"
#include "palette.h"

namespace reel::logging {

using detail::fail;

namespace {

constexpr Colour ink{30, 30, 30}, faint{215, 215, 215}, no_value{170, 170, 170};
constexpr double letter = 9, title_letter = 11;  // the heights of capitals in pixels

using Anchor = Canvas::Anchor;

// The part of a picture that is inside the axes, in pixels.
struct Plane {
  double left, top, right, bottom;

  double x(double position) const { return left + position * (right - left); }
  double y(double position) const { return bottom - position * (bottom - top); }
};

void check_size(int width, int height, Location where) {
  constexpr int least = 64, most = 8192;
  for (int size : {width, height})
    if (size < least || size > most)
      fail<Error>(figure_name, where, "a picture of {} × {} pixels is not within {} and {} pixels", width, height,
                  least, most);
}

double widest_label(const Canvas& canvas, const std::vector<Axis::Tick>& ticks) {
  double widest = 0;
  for (const Axis::Tick& tick : ticks) widest = std::max(widest, canvas.text_width(tick.label, letter));
  return widest;
}

// Draws what is around the plane: title, names of the axes.
void draw_names(Canvas& canvas, const Plane& plane, const std::string& title, const std::string& x_label,
                const std::string& y_label) {
  double middle = (plane.left + plane.right) / 2;
  canvas.text(middle, 8 + title_letter, title, title_letter, ink, Anchor::middle);
  canvas.text(middle, canvas.height() - 8.0, x_label, letter, ink, Anchor::middle);
  canvas.text(6, plane.top - 8, y_label, letter, ink);
}

double top_margin(const std::string& title, const std::string& y_label) {
  return 14 + (title.empty() ? 0 : title_letter + 10) + (y_label.empty() ? 0 : letter + 8);
}

double bottom_margin(const std::string& x_label) { return 12 + letter + (x_label.empty() ? 0 : letter + 10); }

double x_of(const Curve& curve, std::size_t i) { return curve.x.empty() ? static_cast<double>(i) : curve.x[i]; }

void draw_curve(Canvas& canvas, const Plane& plane, const Axis& x_axis, const Axis& y_axis, const Curve& curve,
                Colour colour) {
  std::vector<Point> joined;
  for (std::size_t i = 0; i <= curve.y.size(); ++i) {
    if (i < curve.y.size()) {
      Point point{plane.x(x_axis.position(x_of(curve, i))), plane.y(y_axis.position(curve.y[i]))};
      if (std::isfinite(point.x) && std::isfinite(point.y)) {
        joined.push_back(point);
        continue;
      }
    }
    // A point without neighbours is a larger dot.
    canvas.lines(joined, joined.size() == 1 ? 5 : 2, colour);
    joined.clear();
  }
}

void draw_legend(Canvas& canvas, const Plane& plane, const std::vector<Curve>& curves) {
  double widest = 0;
  int rows = 0;
  for (const Curve& curve : curves) {
    if (curve.name.empty()) continue;
    widest = std::max(widest, canvas.text_width(curve.name, letter));
    ++rows;
  }
  if (rows == 0) return;
  double row_height = letter + 8, left = plane.right - widest - 42, top = plane.top + 6;
  canvas.fill(left - 6, top, plane.right - 4, top + rows * row_height + 6, {250, 250, 250});
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].name.empty()) continue;
    Colour colour = curve_colours[i % curve_colours.size()];
    canvas.line({left, top + 4 + letter / 2}, {left + 20, top + 4 + letter / 2}, 3, colour);
    canvas.text(left + 28, top + 4 + letter, curves[i].name, letter, ink);
    top += row_height;
  }
}

void draw_grid(Canvas& canvas, const Plane& plane, const Axis& x_axis, const Axis& y_axis) {
  for (const Axis::Tick& tick : y_axis.ticks()) {
    double y = plane.y(tick.position);
    canvas.line({plane.left, y}, {plane.right, y}, 1, faint);
    canvas.text(plane.left - 7, y + letter / 2, tick.label, letter, ink, Anchor::end);
  }
  for (const Axis::Tick& tick : x_axis.ticks()) {
    double x = plane.x(tick.position);
    canvas.line({x, plane.top}, {x, plane.bottom}, 1, faint);
    canvas.text(x, plane.bottom + 7 + letter, tick.label, letter, ink, Anchor::middle);
  }
  canvas.line({plane.left, plane.bottom}, {plane.right, plane.bottom}, 1, ink);
  canvas.line({plane.left, plane.top}, {plane.left, plane.bottom}, 1, ink);
}

// The labels of rows or columns, as many as there is room for.
std::vector<std::string> labels_or_indices(const std::vector<std::string>& labels, std::int64_t count) {
  if (!labels.empty()) return labels;
  std::vector<std::string> indices;
  for (std::int64_t i = 0; i < count; ++i) indices.push_back(fmt::format("{}", i));
  return indices;
}

// Every how manieth label is drawn where each takes `size` pixels and has `room`.
std::size_t label_stride(double size, double room) {
  return static_cast<std::size_t>(std::max(1.0, std::ceil((size + 8) / std::max(room, 1e-3))));
}

void check_labels(const HeatMap& map, Location where) {
  const Tensor& values = detail::tensor_of(figure_name, Arg(map.values, where));
  if (values.rank() != 2)
    fail<ShapeError>(figure_name, where, "the values of a heat map must be a matrix, not {}", detail::describe(values));
  auto check = [&](const std::vector<std::string>& labels, std::int64_t count, const char* of) {
    if (!labels.empty() && std::ssize(labels) != count)
      fail<Error>(figure_name, where, "{} labels do not fit {} {}", labels.size(), count, of);
  };
  check(map.row_labels, values.size(0), "rows");
  check(map.column_labels, values.size(1), "columns");
}

// Each pixel has the colour of the element that it is on; of many elements in a pixel one is seen.
void draw_cells(Canvas& canvas, const Plane& plane, const Tensor& values, const Axis& scale) {
  std::int64_t rows = values.size(0), columns = values.size(1);
  auto left = static_cast<int>(plane.left), top = static_cast<int>(plane.top);
  int width = static_cast<int>(plane.right) - left, height = static_cast<int>(plane.bottom) - top;
  if (rows == 0 || columns == 0 || width <= 0 || height <= 0) return;
  auto index = [](int pixel, int size, std::int64_t count) {
    return std::min(static_cast<std::int64_t>((pixel + 0.5) / size * static_cast<double>(count)), count - 1);
  };
  const double* all = values.data<double>();
  std::vector<Colour> colours;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      double position = scale.position(all[index(y, height, rows) * columns + index(x, width, columns)]);
      colours.push_back(std::isnan(position) ? no_value : scale_colour(position));
    }
  canvas.paint(left, top, width, height, colours);
}

void draw_scale(Canvas& canvas, const Plane& plane, const Axis& scale) {
  double left = plane.right + 14, right = left + 14;
  for (double y = plane.top; y < plane.bottom; ++y)
    canvas.fill(left, y, right, y + 1, scale_colour((plane.bottom - y) / (plane.bottom - plane.top)));
  for (const Axis::Tick& tick : scale.ticks())
    canvas.text(right + 6, plane.y(tick.position) + letter / 2, tick.label, letter, ink);
}

}  // namespace

void Writer::figure(std::string_view tag, const LinePlot& plot, std::int64_t step, Location where) {
  check_tag(figure_name, "the tag", tag, where);
  files_->add_picture(tag, draw(plot, where), step, where);
}

void Writer::figure(std::string_view tag, const HeatMap& map, std::int64_t step, Location where) {
  check_tag(figure_name, "the tag", tag, where);
  files_->add_picture(tag, draw(map, where), step, where);
}

detail::Pixels draw(const LinePlot& plot, Location where) {
  check_size(plot.width, plot.height, where);
  Axis::Range x_range, y_range(plot.log_y);
  for (const Curve& curve : plot.curves) {
    if (!curve.x.empty() && curve.x.size() != curve.y.size())
      fail<Error>(figure_name, where, "the curve {} has {} positions and {} values", detail::shown(curve.name),
                  curve.x.size(), curve.y.size());
    for (std::size_t i = 0; i < curve.y.size(); ++i) {
      x_range.add(x_of(curve, i));
      y_range.add(curve.y[i]);
    }
  }
  Canvas canvas(plot.width, plot.height, where);
  Axis x_axis(x_range, 0.02, plot.width / 90), y_axis(y_range, 0.05, plot.height / 60);
  Plane plane{widest_label(canvas, y_axis.ticks()) + 16, top_margin(plot.title, plot.y_label), plot.width - 18.0,
              plot.height - bottom_margin(plot.x_label)};
  draw_grid(canvas, plane, x_axis, y_axis);
  draw_names(canvas, plane, plot.title, plot.x_label, plot.y_label);
  for (std::size_t i = 0; i < plot.curves.size(); ++i)
    draw_curve(canvas, plane, x_axis, y_axis, plot.curves[i], curve_colours[i % curve_colours.size()]);
  draw_legend(canvas, plane, plot.curves);
  return canvas.pixels();
}

detail::Pixels draw(const HeatMap& map, Location where) {
  check_size(map.width, map.height, where);
  check_labels(map, where);
  NoRecord pause;
  Tensor values = detail::contiguous_if_needed(detail::to_if_needed(detail::to_if_needed(map.values, cpu), f64));
  Axis::Range range;
  for (std::int64_t i = 0; i < values.numel(); ++i) range.add(values.data<double>()[i]);
  Axis scale(range, 0, map.height / 60);
  std::vector<std::string> rows = labels_or_indices(map.row_labels, values.size(0));
  std::vector<std::string> columns = labels_or_indices(map.column_labels, values.size(1));
  Canvas canvas(map.width, map.height, where);
  double row_width = 0, column_width = 0;
  for (const std::string& label : rows) row_width = std::max(row_width, canvas.text_width(label, letter));
  for (const std::string& label : columns) column_width = std::max(column_width, canvas.text_width(label, letter));
  row_width = std::min(row_width, map.width / 3.0);
  Plane plane{std::round(row_width + 16), std::round(top_margin(map.title, map.y_label)),
              std::round(map.width - widest_label(canvas, scale.ticks()) - 44),
              std::round(map.height - bottom_margin(map.x_label))};
  draw_cells(canvas, plane, values, scale);
  draw_scale(canvas, plane, scale);
  draw_names(canvas, plane, map.title, map.x_label, map.y_label);
  auto row_count = static_cast<double>(rows.size()), column_count = static_cast<double>(columns.size());
  for (std::size_t i = 0; i < rows.size(); i += label_stride(letter, (plane.bottom - plane.top) / row_count))
    canvas.text(plane.left - 7, plane.y(1 - (static_cast<double>(i) + 0.5) / row_count) + letter / 2, rows[i], letter,
                ink, Anchor::end);
  for (std::size_t i = 0; i < columns.size();
       i += label_stride(column_width, (plane.right - plane.left) / column_count))
    canvas.text(plane.x((static_cast<double>(i) + 0.5) / column_count), plane.bottom + 7 + letter, columns[i], letter,
                ink, Anchor::middle);
  return canvas.pixels();
}

}  // namespace reel::logging
