#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reel::logging {

/// An axis of a chart: maps numbers to [0, 1], linearly or by their logarithms, and has ticks at round numbers.
class Axis {
 public:
  /// The range that is to be shown. Numbers that are not finite, and on a logarithmic axis those up to 0, are left out.
  class Range {
   public:
    explicit Range(bool logarithmic = false) : logarithmic_(logarithmic) {}
    void add(double value);
    bool shows(double value) const;

   private:
    friend class Axis;
    bool logarithmic_, empty_ = true;
    double low_ = 0, high_ = 1;
  };
  struct Tick {
    double position;  ///< in [0, 1]
    std::string label;
  };

  enum class Ticks : std::uint8_t { anywhere, at_integers };

  /// An axis with room at both ends of the range for `margin` of its length, and about `count` ticks.
  Axis(const Range& range, double margin, int count, Ticks ticks = Ticks::anywhere);
  /// The position of a number: in [0, 1] within the axis, NaN for one that cannot be shown.
  double position(double value) const;
  /// The number at a position in [0, 1].
  double value(double position) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  double coordinate(double value) const;
  void add_linear_ticks(double low, double high, int count, double least_step);
  void add_logarithmic_ticks(int count);

  Range range_;
  double low_, high_;  // in the coordinates that positions are linear in
  std::vector<Tick> ticks_;
};

/// A number for people to read, of at most `digits` significant digits: "0.25", "1e6".
std::string short_number(double value, int digits = 4);

}  // namespace reel::logging
