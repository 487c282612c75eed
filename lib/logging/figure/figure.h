#pragma once

#include <reel/location.h>
#include <reel/logging/figure.h>

#include "../../io/image_codec.h"

namespace reel::logging {

/// The function that errors of drawing name.
constexpr const char* figure_name = "logging::Writer::figure";

/// Draws a line plot. Throws: Error for sizes out of range, and for a curve whose x and y differ in length; FileError
/// without libreel_figure.so.
detail::Pixels draw(const LinePlot& plot, Location where);
/// Draws a heat map with a scale of its colours. Throws: Error for sizes out of range, for undefined values, and for
/// labels of another number than the rows or columns; ShapeError unless the values are a matrix; FileError without
/// libreel_figure.so.
detail::Pixels draw(const HeatMap& map, Location where);

}  // namespace reel::logging
