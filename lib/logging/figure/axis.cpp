#include "axis.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace reel::logging {

void Axis::Range::add(double value) {
  if (!shows(value)) return;
  low_ = empty_ ? value : std::min(low_, value);
  high_ = empty_ ? value : std::max(high_, value);
  empty_ = false;
}

bool Axis::Range::shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }

double Axis::coordinate(double value) const { return range_.logarithmic_ ? std::log10(value) : value; }

Axis::Axis(const Range& range, double margin, int count, Ticks ticks) : range_(range) {
  bool at_integers = ticks == Ticks::at_integers;
  if (range_.empty_ && range_.logarithmic_) range_.low_ = 0.1;
  low_ = coordinate(range_.low_);
  high_ = coordinate(range_.high_);
  // The difference of two numbers may overflow, and that of equal ones is 0.
  constexpr double most = std::numeric_limits<double>::max() / 8;
  low_ = std::clamp(low_, -most, most);
  high_ = std::clamp(high_, -most, most);
  double least = std::max({std::abs(low_), std::abs(high_), 1e-300}) * 1e-9;
  if (high_ - low_ < least) {
    double half = low_ == 0 || range_.logarithmic_ || at_integers ? 0.5 : std::abs(low_) / 10;
    low_ -= half;
    high_ += half;
  }
  double room = margin * (high_ - low_);
  low_ -= room;
  high_ += room;
  if (range_.logarithmic_ && high_ - low_ >= 1)
    add_logarithmic_ticks(count);
  else if (range_.logarithmic_)
    add_linear_ticks(std::pow(10, low_), std::pow(10, high_), count, 0);
  else
    add_linear_ticks(low_, high_, count, at_integers ? 1 : 0);
}

double Axis::position(double value) const {
  if (!range_.shows(value)) return std::numeric_limits<double>::quiet_NaN();
  return (coordinate(value) - low_) / (high_ - low_);
}

double Axis::value(double position) const {
  double found = low_ + position * (high_ - low_);
  return range_.logarithmic_ ? std::pow(10, found) : found;
}

void Axis::add_linear_ticks(double low, double high, int count, double least_step) {
  double raw = (high - low) / std::max(count, 1);
  double power = std::pow(10, std::floor(std::log10(raw)));
  double step = power * 10;
  for (double factor : {5.0, 2.0, 1.0})
    if (power * factor >= raw) step = power * factor;
  step = std::max(step, least_step);
  // A tick at an end must not be lost to rounding.
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && ticks_.size() < 32; ++i)
    ticks_.push_back({position(i * step), short_number(i == 0 ? 0 : i * step, 6)});
}

void Axis::add_logarithmic_ticks(int count) {
  double step = std::max(1.0, std::ceil((high_ - low_) / std::max(count, 1)));
  bool is_short = high_ - low_ < 2.5;
  for (double i = std::floor(low_ / step) * step; i <= high_ && ticks_.size() < 32; i += step)
    for (double factor : {1.0, 2.0, 5.0}) {
      double at = (i + std::log10(factor) - low_) / (high_ - low_);
      if ((factor == 1 || is_short) && at >= 0 && at <= 1)
        ticks_.push_back({at, short_number(factor * std::pow(10, i))});
    }
}

std::string short_number(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  std::string text = fmt::format("{:.{}g}", value, digits);
  std::size_t exponent = text.find('e');
  if (exponent == text.npos) return text;
  // "1e+06" is longer than it must be.
  std::size_t first = text.find_first_not_of("+-0", exponent + 1);
  std::string sign = text[exponent + 1] == '-' ? "-" : "";
  return text.substr(0, exponent + 1) + sign + text.substr(std::min(first, text.size()));
}

}  // namespace reel::logging
