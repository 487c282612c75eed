#include <reel/testing.h>

#include <cmath>
#include <cstdint>
#include <ostream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <reel/no_record.h>
#include <reel/ops/shape.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"

namespace reel::testing {

using namespace detail;

namespace {

constexpr const char* all_close_name = "testing::all_close";
// Tensors with more elements are not printed whole.
constexpr std::int64_t most_printed = 64;

struct Tolerances {
  double relative, absolute;
};

Tolerances usual_for(DType dtype) {
  switch (dtype) {
    case DType::f64: return {1e-7, 1e-7};
    case DType::f32: return {1.3e-6, 1e-5};
    case DType::f16: return {1e-3, 1e-5};
    case DType::bf16: return {1.6e-2, 1e-5};
    default: return {0, 0};
  }
}

Tolerances tolerances_of(const CloseOptions& options, DType dtype, Location where) {
  Tolerances usual = usual_for(dtype);
  Tolerances chosen{std::isnan(options.relative) ? usual.relative : options.relative,
                    std::isnan(options.absolute) ? usual.absolute : options.absolute};
  if (chosen.relative < 0 || chosen.absolute < 0)
    detail::fail<Error>(all_close_name, where, ".relative is {:g} and .absolute {:g}; both must be at least 0",
                        chosen.relative, chosen.absolute);
  return chosen;
}

// The elements in an order and a type in which those of both tensors can be compared exactly.
template <class T>
std::vector<T> elements_of(const Tensor& tensor) {
  return to_if_needed(to_if_needed(tensor, cpu), dtype_of<T>()).template to_vector<T>();
}

// How far apart two elements are beyond what is allowed; 0: they are close, ∞ for NaN and infinities.
double excess(double found, double expected, const Tolerances& tolerances, bool equal_nan) {
  if (found == expected || (equal_nan && std::isnan(found) && std::isnan(expected))) return 0;
  double apart = std::abs(found - expected), allowed = tolerances.absolute + tolerances.relative * std::abs(expected);
  if (!(std::isfinite(found) && std::isfinite(expected))) return std::numeric_limits<double>::infinity();
  return apart <= allowed ? 0 : apart - allowed;
}
// i64 elements may not be numbers of f64.
double excess(std::int64_t found, std::int64_t expected, const Tolerances& tolerances, bool) {
  if (found == expected) return 0;
  double apart = std::abs(static_cast<double>(found) - static_cast<double>(expected));
  double allowed = tolerances.absolute + tolerances.relative * std::abs(static_cast<double>(expected));
  return std::max(apart, 1.0) <= allowed ? 0 : std::max(apart - allowed, std::numeric_limits<double>::min());
}

std::vector<std::int64_t> index_of(std::int64_t position, const Shape& shape) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank(); axis-- > 0; position /= shape[axis])
    index[static_cast<std::size_t>(axis)] = position % shape[axis];
  return index;
}

template <class T>
std::string difference_of(const Tensor& found, const Tensor& expected, const Tolerances& tolerances, bool equal_nan) {
  std::vector<T> have = elements_of<T>(found), want = elements_of<T>(expected);
  std::int64_t count = 0, worst = 0;
  double most = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    double beyond = excess(have[i], want[i], tolerances, equal_nan);
    if (beyond == 0) continue;
    ++count;
    if (beyond <= most) continue;
    most = beyond;
    worst = static_cast<std::int64_t>(i);
  }
  if (count == 0) return {};
  T a = have[static_cast<std::size_t>(worst)], b = want[static_cast<std::size_t>(worst)];
  std::string text = fmt::format(
      "{} of {} elements differ; the worst at [{}]: found {}, expected {}, {:.3g} apart, where {:g} + {:g} × "
      "|expected| is allowed",
      count, want.size(), fmt::join(index_of(worst, found.shape()), ", "), a, b,
      std::abs(static_cast<double>(a) - static_cast<double>(b)), tolerances.absolute, tolerances.relative);
  if (found.numel() <= most_printed)
    text += fmt::format("\nfound:\n{}\nexpected:\n{}", to_string(found), to_string(expected));
  return text;
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {} on {}", to_string(tensor.shape()), name_of(tensor.dtype()), to_string(tensor.device()));
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Closeness& closeness) {
  return out << (closeness ? std::string("close") : closeness.difference());
}

Closeness all_close(const Tensor& found, const Tensor& expected, const CloseOptions& options, Location where) {
  if (!found.defined() || !expected.defined())
    detail::fail<Error>(all_close_name, where, "the {} tensor is undefined", found.defined() ? "expected" : "found");
  Tolerances tolerances = tolerances_of(options, found.dtype(), where);
  bool other_dtype = options.check_dtype && found.dtype() != expected.dtype();
  if (found.shape() != expected.shape() || other_dtype)
    return Closeness(fmt::format("found {}, expected {}", describe(found), describe(expected)));
  NoRecord pause;
  bool integers = !is_floating(found.dtype()) && !is_floating(expected.dtype());
  return Closeness(integers ? difference_of<std::int64_t>(found, expected, tolerances, options.equal_nan)
                            : difference_of<double>(found, expected, tolerances, options.equal_nan));
}

}  // namespace reel::testing
