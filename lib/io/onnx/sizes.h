#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <reel/location.h>

#include "trace.h"

namespace reel::io::onnx {

/// A number in every run of the exported function.
using Numbers = std::vector<std::int64_t>;

/// A term of a polynomial in the sizes of the named axes: factor · Π of the axes whose bits are set.
struct Term {
  std::int64_t factor;
  unsigned axes;
};

/// The named axes of the inputs, and their sizes in all runs. There is a run for each choice of a smaller and a larger
/// size of each axis, which determine every polynomial that has no axis squared, and two runs at other sizes, which
/// check it. Without named axes there are two runs.
class NamedAxes {
 public:
  /// Throws: Error for an axis with two sizes in the examples, for more than 4 named axes, and for more names than an
  /// example has axes.
  NamedAxes(const std::vector<Input>& inputs, const char* function, Location where);

  std::size_t runs() const { return sizes_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  /// The input and the axis of it that have a named axis.
  std::pair<std::size_t, int> place(std::size_t axis) const { return places_[axis]; }
  /// An example at the sizes of a run: its elements along a named axis are those of the example, repeated; floating ones
  /// are in another order in each run, and a little smaller.
  Tensor example(const Input& input, std::size_t run) const;
  /// The sizes of a run as text, for messages: "batch = 3, time = 5".
  std::string sizes_text(std::size_t run) const;

  /// The polynomial that has these numbers in all runs, constant terms first; empty for 0; nothing if there is none.
  std::optional<std::vector<Term>> fit(const Numbers& numbers) const;

 private:
  std::size_t index_of(const std::string& name) const;

  std::vector<std::string> names_;
  std::vector<std::pair<std::size_t, int>> places_;
  std::vector<std::vector<std::int64_t>> sizes_;  // of each run
};

/// True if the numbers of all runs are equal.
bool is_constant(const Numbers& numbers);

}  // namespace reel::io::onnx
