#pragma once

#include <iosfwd>
#include <limits>
#include <string>
#include <utility>

#include <reel/location.h>
#include <reel/tensor.h>

/// \namespace reel::testing
/// Checks for tests of models, with any framework for tests.
namespace reel::testing {

/// Options of `all_close`.
struct CloseOptions {
  /// The part of |expected| by which an element may differ, at least 0. Default NaN: by the dtype of `found`, 1e-7 for
  /// f64, 1.3e-6 for f32, 1e-3 for f16, 1.6e-2 for bf16, and 0 for integers and booleans.
  double relative = std::numeric_limits<double>::quiet_NaN();
  /// The absolute tolerance, added to the relative one, at least 0. Default NaN: 1e-7 for f64, 1e-5 for other floating
  /// dtypes, else 0.
  double absolute = std::numeric_limits<double>::quiet_NaN();
  bool equal_nan = false;   ///< whether two NaNs are equal. Default false
  bool check_dtype = true;  ///< whether other dtypes are a difference. Default true
};

/// Whether tensors are close, and what a failed test says of them: Catch2, and other frameworks, print it by `<<`.
class Closeness {
 public:
  /// Close if there is nothing to say.
  explicit Closeness(std::string difference) : difference_(std::move(difference)) {}
  /// True if the tensors are close.
  explicit operator bool() const { return difference_.empty(); }
  /// How they differ: shapes, dtypes, or how many elements, with the worst one and small tensors whole. Empty if they
  /// are close.
  const std::string& difference() const { return difference_; }

 private:
  std::string difference_;
};

/// Writes how the tensors differ, or that they are close. Returns `out`.
std::ostream& operator<<(std::ostream& out, const Closeness& closeness);

/// Compares two tensors of one shape element by element: |found − expected| ≤ absolute + relative × |expected|;
/// equal infinities are close. The tensors may be on any devices:
///
///     CHECK(testing::all_close(model(x), expected));  // a failure prints the worst element
///
/// Throws: Error for an undefined tensor, and tolerances that are negative.
/// Source: the tolerances are those of PyTorch, torch.testing.assert_close.
Closeness all_close(const Tensor& found, const Tensor& expected, const CloseOptions& options = {},
                    Location where = Location::here());

}  // namespace reel::testing
