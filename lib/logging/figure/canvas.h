#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <reel/location.h>

#include "../../io/image_codec.h"
#include "../../io/modules/figure_table.h"

namespace reel::logging {

using detail::Colour;
using Point = detail::FigurePoint;

/// A white picture to draw on with cairo, in pixels from its upper left corner. What is outside of it is not drawn.
class Canvas {
 public:
  /// Throws: FileError without libreel_figure.so; MemoryError.
  Canvas(int width, int height, Location where);

  int width() const { return width_; }
  int height() const { return height_; }

  /// Fills a rectangle; its edges are rounded to pixels.
  void fill(double left, double top, double right, double bottom, Colour colour);
  /// Draws lines from point to point with round ends and smooth edges; one point is a dot.
  void lines(std::span<const Point> points, double thickness, Colour colour);
  void line(Point from, Point to, double thickness, Colour colour);
  /// Gives the pixels of a rectangle within the picture their colours, row by row.
  void paint(int left, int top, int width, int height, const std::vector<Colour>& colours);

  /// The part of a text that is at the given position.
  enum class Anchor : std::uint8_t { start, middle, end };
  /// Draws a line of text whose capitals are `height` pixels high, above the baseline y. Characters beyond ASCII are
  /// boxes.
  void text(double x, double y, std::string_view text, double height, Colour colour, Anchor anchor = Anchor::start);
  /// The width of a text in pixels.
  double text_width(std::string_view text, double height) const;

  /// Throws: Error if cairo has failed to draw.
  detail::Pixels pixels() const;

 private:
  const detail::FigureTable& table_;
  int width_, height_;
  Location where_;
  std::unique_ptr<detail::Drawing, void (*)(detail::Drawing*) noexcept> drawing_;
};

}  // namespace reel::logging
