#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "../../io/modules/figure_table.h"

namespace reel::logging {

using detail::Colour;

/// Colours that can be told apart by most people, also by those who do not see all colours.
/// Source: Okabe & Ito 2008, Color universal design.
constexpr std::array<Colour, 7> curve_colours = {
    {{0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {86, 180, 233}, {230, 159, 0}, {90, 90, 90}}};

/// The colour of a value, cut off at 0 and 1, on a scale that becomes lighter evenly, from dark blue over green to
/// yellow.
inline Colour scale_colour(double value) {
  constexpr std::array<std::array<double, 3>, 6> stops = {
      {{48, 18, 84}, {47, 72, 142}, {28, 123, 140}, {54, 170, 112}, {150, 208, 64}, {250, 232, 44}}};
  double place = std::clamp(value, 0.0, 1.0) * (stops.size() - 1);
  auto stop = static_cast<std::size_t>(place);
  if (stop > stops.size() - 2) stop = stops.size() - 2;
  double share = place - static_cast<double>(stop);
  auto channel = [&](std::size_t i) {
    return static_cast<std::uint8_t>(stops[stop][i] * (1 - share) + stops[stop + 1][i] * share + 0.5);
  };
  return {channel(0), channel(1), channel(2)};
}

}  // namespace reel::logging
