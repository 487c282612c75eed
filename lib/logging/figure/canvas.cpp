#include "canvas.h"

#include <array>
#include <cmath>
#include <cstring>

#include <reel/io/safetensors.h>

#include "../../core/memory_error.h"
#include "../../core/modules/module.h"
#include "../../core/op_error.h"
#include "../../core/printable.h"
#include "figure.h"

namespace reel::logging {

Canvas::Canvas(int width, int height, Location where)
    : table_(detail::open_module<detail::FigureTable, io::FileError>(figure_name, where)),
      width_(width),
      height_(height),
      where_(where),
      drawing_(table_.begin(width, height), table_.end) {
  if (!drawing_) detail::fail_for_memory(figure_name, where);
}

void Canvas::fill(double left, double top, double right, double bottom, Colour colour) {
  table_.fill(drawing_.get(), {std::round(left), std::round(top)}, {std::round(right), std::round(bottom)}, colour);
}

void Canvas::lines(std::span<const Point> points, double thickness, Colour colour) {
  table_.lines(drawing_.get(), points.data(), points.size(), thickness, colour);
}

void Canvas::line(Point from, Point to, double thickness, Colour colour) {
  lines(std::array{from, to}, thickness, colour);
}

void Canvas::paint(int left, int top, int width, int height, const std::vector<Colour>& colours) {
  table_.paint(drawing_.get(), left, top, width, height, colours.data());
}

double Canvas::text_width(std::string_view text, double height) const {
  return table_.text_width(drawing_.get(), detail::printable(text).c_str(), height);
}

void Canvas::text(double x, double y, std::string_view text, double height, Colour colour, Anchor anchor) {
  if (anchor != Anchor::start) x -= text_width(text, height) * (anchor == Anchor::middle ? 0.5 : 1.0);
  table_.text(drawing_.get(), {x, y}, detail::printable(text).c_str(), height, colour);
}

detail::Pixels Canvas::pixels() const {
  std::vector<Colour> colours(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_));
  detail::ModuleMessage message;
  if (!table_.pixels(drawing_.get(), colours.data(), message))
    detail::fail<Error>(figure_name, where_, "cairo cannot draw it: {}", detail::printable(message.text));
  detail::Pixels pixels{height_, width_, 3, std::vector<std::uint8_t>(colours.size() * 3)};
  static_assert(sizeof(Colour) == 3);
  std::memcpy(pixels.values.data(), colours.data(), pixels.values.size());
  return pixels;
}

}  // namespace reel::logging
