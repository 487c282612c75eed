#pragma once

#include <cmath>

#include <nlohmann/json.hpp>

namespace reel::logging {

/// A number of JSON; NaN and ±∞, which JSON lacks, as strings.
inline nlohmann::ordered_json json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace reel::logging
