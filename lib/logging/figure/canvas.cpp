#include "canvas.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "../../core/utf8.h"
#include "stroke_font.h"

namespace reel::logging {

namespace {

// In units of the font: the height of capitals, and from one character to the next.
constexpr double capital_height = 6, advance_width = 6, character_width = 4;

std::string_view strokes_of(char32_t code) {
  return code >= 0x20 && code < 0x7f ? stroke_font[code - 0x20] : stroke_box;
}

// The distance of a point from the line between two others.
double distance(double x, double y, double x0, double y0, double x1, double y1) {
  double dx = x1 - x0, dy = y1 - y0;
  double square = dx * dx + dy * dy;
  double share = square > 0 ? std::clamp(((x - x0) * dx + (y - y0) * dy) / square, 0.0, 1.0) : 0.0;
  return std::hypot(x - x0 - share * dx, y - y0 - share * dy);
}

int pixel_in(double value, int size) { return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(size))); }

}  // namespace

Canvas::Canvas(int width, int height) : pixels_{height, width, 3, {}} {
  pixels_.values.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3, 255);
}

void Canvas::blend(int x, int y, double share, Colour colour) {
  std::size_t at = (static_cast<std::size_t>(y) * static_cast<std::size_t>(width()) + static_cast<std::size_t>(x)) * 3;
  auto mix = [&](std::uint8_t& channel, std::uint8_t wanted) {
    channel = static_cast<std::uint8_t>(channel + share * (wanted - channel) + 0.5);
  };
  mix(pixels_.values[at], colour.red);
  mix(pixels_.values[at + 1], colour.green);
  mix(pixels_.values[at + 2], colour.blue);
}

void Canvas::fill(double left, double top, double right, double bottom, Colour colour) {
  int first_x = pixel_in(std::round(left), width()), last_x = pixel_in(std::round(right), width());
  int first_y = pixel_in(std::round(top), height()), last_y = pixel_in(std::round(bottom), height());
  for (int y = first_y; y < last_y; ++y)
    for (int x = first_x; x < last_x; ++x) blend(x, y, 1, colour);
}

void Canvas::line(double x0, double y0, double x1, double y1, double thickness, Colour colour) {
  double reach = thickness / 2 + 1;
  int top = pixel_in(std::floor(std::min(y0, y1) - reach), height());
  int bottom = pixel_in(std::ceil(std::max(y0, y1) + reach), height());
  double slope = y1 == y0 ? 0 : (x1 - x0) / (y1 - y0);
  // Within a row only what is near the line is looked at.
  double wide = reach * std::hypot(1, slope) + std::abs(slope);
  for (int y = top; y < bottom; ++y) {
    double middle = x0 + (y + 0.5 - y0) * slope;
    double low = y1 == y0 ? std::min(x0, x1) - reach : std::max(middle - wide, std::min(x0, x1) - reach);
    double high = y1 == y0 ? std::max(x0, x1) + reach : std::min(middle + wide, std::max(x0, x1) + reach);
    int first = pixel_in(std::floor(low), width()), last = pixel_in(std::ceil(high), width());
    for (int x = first; x < last; ++x) {
      double share = thickness / 2 + 0.5 - distance(x + 0.5, y + 0.5, x0, y0, x1, y1);
      if (share > 0) blend(x, y, std::min(share, 1.0), colour);
    }
  }
}

double Canvas::text_width(std::string_view text, double height) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(detail::first_character(text).bytes);
  if (count == 0) return 0;
  return (static_cast<double>(count) * advance_width - (advance_width - character_width)) * height / capital_height;
}

void Canvas::text(double x, double y, std::string_view text, double height, Colour colour, Anchor anchor) {
  double unit = height / capital_height, thickness = std::max(1.0, unit * 0.9);
  if (anchor != Anchor::start) x -= text_width(text, height) * (anchor == Anchor::middle ? 0.5 : 1.0);
  double top = y - height;
  while (!text.empty()) {
    detail::Character character = detail::first_character(text);
    text.remove_prefix(character.bytes);
    std::string_view strokes = strokes_of(character.is_valid ? character.code : 0);
    for (std::size_t i = 0; i + 3 < strokes.size();) {
      auto at = [&](std::size_t k) { return unit * (strokes[k] - '0'); };
      line(x + at(i), top + at(i + 1), x + at(i + 2), top + at(i + 3), thickness, colour);
      i += 2;
      // The next stroke begins after the last point of this one.
      if (i + 2 < strokes.size() && strokes[i + 2] == ' ') i += 3;
    }
    x += advance_width * unit;
  }
}

}  // namespace reel::logging
