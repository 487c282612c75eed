#pragma once

#include <cstddef>
#include <cstdint>

#include "../../core/modules/module_table.h"

namespace reel::detail {

/// A picture while it is drawn.
struct Drawing;

/// A colour of 8 bits a channel.
struct Colour {
  std::uint8_t red, green, blue;
};

/// A place in a picture, in pixels from its upper left corner.
struct FigurePoint {
  double x, y;
};

/// The functions of libreel_figure.so.
struct FigureTable {
  static constexpr ModuleName module = {"reel_figure", "figures", "libcairo2", 1};

  /// Begins a white picture, in pixels.
  Drawing* (*begin)(int width, int height) noexcept;
  void (*end)(Drawing* drawing) noexcept;
  /// Fills a rectangle, whose edges are pixels' edges.
  void (*fill)(Drawing* drawing, FigurePoint corner, FigurePoint opposite, Colour colour) noexcept;
  /// Draws lines from point to point with round ends and corners; one point is a dot.
  void (*lines)(Drawing* drawing, const FigurePoint* points, std::size_t count, double thickness,
                Colour colour) noexcept;
  /// Writes UTF-8 that ends with a NUL from a point on its baseline, in letters of a height in pixels.
  void (*text)(Drawing* drawing, FigurePoint start, const char* text, double height, Colour colour) noexcept;
  /// The width of a text in pixels.
  double (*text_width)(Drawing* drawing, const char* text, double height) noexcept;
  /// Copies colours, row by row, to the pixels of a rectangle within the picture.
  void (*paint)(Drawing* drawing, int left, int top, int width, int height, const Colour* colours) noexcept;
  /// Copies the picture, width × height pixels. Returns false, after a message, if anything has failed since it began.
  bool (*pixels)(Drawing* drawing, Colour* colours, ModuleMessage& message) noexcept;
};

}  // namespace reel::detail
