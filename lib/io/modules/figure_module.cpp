#include <cairo.h>

#include <cstdio>
#include <new>

#include "figure_table.h"

namespace reel::detail {

struct Drawing {
  cairo_surface_t* surface;
  cairo_t* context;
};

namespace {

// The height of capitals, of the font's size.
constexpr double capital_height = 0.68;

void set_colour(cairo_t* context, Colour colour) {
  cairo_set_source_rgb(context, colour.red / 255.0, colour.green / 255.0, colour.blue / 255.0);
}

// The rows of a picture, which begin every `stride` pixels. RGB24: blue in the lowest byte.
std::uint32_t* pixels_of(const Drawing& drawing) {
  cairo_surface_flush(drawing.surface);
  return reinterpret_cast<std::uint32_t*>(cairo_image_surface_get_data(drawing.surface));
}

std::size_t stride_of(const Drawing& drawing) {
  return static_cast<std::size_t>(cairo_image_surface_get_stride(drawing.surface)) / sizeof(std::uint32_t);
}

Drawing* begin(int width, int height) noexcept {
  cairo_surface_t* surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
  cairo_t* context = cairo_create(surface);
  cairo_set_source_rgb(context, 1, 1, 1);
  cairo_paint(context);
  cairo_set_line_cap(context, CAIRO_LINE_CAP_ROUND);
  cairo_set_line_join(context, CAIRO_LINE_JOIN_ROUND);
  // The font that cairo brings, so that a picture does not depend on the fonts of the machine.
  cairo_select_font_face(context, "@cairo:", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  return new (std::nothrow) Drawing{surface, context};
}

void end(Drawing* drawing) noexcept {
  if (!drawing) return;
  cairo_destroy(drawing->context);
  cairo_surface_destroy(drawing->surface);
  delete drawing;
}

void fill(Drawing* drawing, FigurePoint corner, FigurePoint opposite, Colour colour) noexcept {
  set_colour(drawing->context, colour);
  cairo_rectangle(drawing->context, corner.x, corner.y, opposite.x - corner.x, opposite.y - corner.y);
  cairo_fill(drawing->context);
}

void lines(Drawing* drawing, const FigurePoint* points, std::size_t count, double thickness, Colour colour) noexcept {
  set_colour(drawing->context, colour);
  cairo_set_line_width(drawing->context, thickness);
  for (std::size_t i = 0; i < count; ++i) cairo_line_to(drawing->context, points[i].x, points[i].y);
  if (count == 1) cairo_close_path(drawing->context);
  cairo_stroke(drawing->context);
}

void text(Drawing* drawing, FigurePoint start, const char* text, double height, Colour colour) noexcept {
  set_colour(drawing->context, colour);
  cairo_set_font_size(drawing->context, height / capital_height);
  cairo_move_to(drawing->context, start.x, start.y);
  cairo_show_text(drawing->context, text);
  cairo_new_path(drawing->context);
}

double text_width(Drawing* drawing, const char* text, double height) noexcept {
  cairo_set_font_size(drawing->context, height / capital_height);
  cairo_text_extents_t extents;
  cairo_text_extents(drawing->context, text, &extents);
  return extents.x_advance;
}

void paint(Drawing* drawing, int left, int top, int width, int height, const Colour* colours) noexcept {
  std::uint32_t* pixels = pixels_of(*drawing);
  std::size_t stride = stride_of(*drawing);
  for (int y = 0; pixels && y < height; ++y)
    for (int x = 0; x < width; ++x, ++colours)
      pixels[static_cast<std::size_t>(top + y) * stride + static_cast<std::size_t>(left + x)] =
          std::uint32_t{colours->red} << 16 | std::uint32_t{colours->green} << 8 | colours->blue;
  cairo_surface_mark_dirty(drawing->surface);
}

bool pixels(Drawing* drawing, Colour* colours, ModuleMessage& message) noexcept {
  if (cairo_status_t status = cairo_status(drawing->context); status != CAIRO_STATUS_SUCCESS) {
    std::snprintf(message.text, sizeof message.text, "%s", cairo_status_to_string(status));
    return false;
  }
  const std::uint32_t* pixels = pixels_of(*drawing);
  std::size_t stride = stride_of(*drawing);
  auto width = static_cast<std::size_t>(cairo_image_surface_get_width(drawing->surface));
  auto height = static_cast<std::size_t>(cairo_image_surface_get_height(drawing->surface));
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x) {
      std::uint32_t pixel = pixels[y * stride + x];
      *colours++ = {static_cast<std::uint8_t>(pixel >> 16), static_cast<std::uint8_t>(pixel >> 8),
                    static_cast<std::uint8_t>(pixel)};
    }
  return true;
}

}  // namespace
}  // namespace reel::detail

extern "C" [[gnu::visibility("default")]] const void* reel_module_table(std::uint32_t version,
                                                                        std::size_t bytes) noexcept {
  using namespace reel::detail;
  static const FigureTable table{begin, end, fill, lines, text, text_width, paint, pixels};
  return table_if_compatible(table, version, bytes);
}
