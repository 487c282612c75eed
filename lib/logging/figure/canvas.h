#pragma once

#include <cstdint>
#include <string_view>

#include "../../io/image_codec.h"
#include "palette.h"

namespace reel::logging {

/// A white picture to draw on, in pixels from its upper left corner. What is outside of it is not drawn.
class Canvas {
 public:
  Canvas(int width, int height);

  int width() const { return static_cast<int>(pixels_.width); }
  int height() const { return static_cast<int>(pixels_.height); }

  /// Fills a rectangle; its edges are rounded to pixels.
  void fill(double left, double top, double right, double bottom, Colour colour);
  /// Draws a straight line with round ends and smooth edges.
  void line(double x0, double y0, double x1, double y1, double thickness, Colour colour);

  /// The part of a text that is at the given position.
  enum class Anchor : std::uint8_t { start, middle, end };
  /// Draws a line of text whose capitals are `height` pixels high, above the baseline y. Characters beyond ASCII are
  /// boxes.
  void text(double x, double y, std::string_view text, double height, Colour colour, Anchor anchor = Anchor::start);
  /// The width of a text in pixels.
  static double text_width(std::string_view text, double height);

  const detail::Pixels& pixels() const { return pixels_; }

 private:
  void blend(int x, int y, double share, Colour colour);

  detail::Pixels pixels_;
};

}  // namespace reel::logging
