#include <reel/debug/statistics.h>

#include <algorithm>
#include <cmath>

#include <reel/ops/elementwise.h>
#include <reel/tape.h>

#include "../core/dtype_dispatch.h"
#include "../core/iteration.h"
#include "../core/op_error.h"
#include "../ops/if_needed.h"

namespace reel::debug {

using namespace detail;

namespace {

using Magnitudes = decltype(TensorStatistics::magnitudes);

// The upper ends of all ranges of magnitudes but the last.
constexpr std::array<double, std::tuple_size_v<Magnitudes> - 1> range_ends = {
    1e-30, 1e-27, 1e-24, 1e-21, 1e-18, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1e0,
    1e3,   1e6,   1e9,   1e12,  1e15,  1e18,  1e21,  1e24, 1e27, 1e30};

void take_in(TensorStatistics& statistics, std::int64_t place, double number) {
  if (std::isnan(number)) {
    if (statistics.nans++ == 0) statistics.first_nan = place;
  } else if (std::isinf(number)) {
    if (statistics.infinities++ == 0) statistics.first_infinity = place;
  } else {
    // The order of the operands makes a number win over NaN.
    statistics.min = statistics.min < number ? statistics.min : number;
    statistics.max = statistics.max > number ? statistics.max : number;
    if (number == 0)
      ++statistics.zeros;
    else
      ++statistics.magnitudes[static_cast<std::size_t>(
          std::upper_bound(range_ends.begin(), range_ends.end(), std::abs(number)) - range_ends.begin())];
  }
}

// "1e-3…1e0: 50, "
std::string magnitudes_text(const Magnitudes& magnitudes) {
  std::string text;
  for (std::size_t i = 0; i < magnitudes.size(); ++i) {
    if (magnitudes[i] == 0) continue;
    int start = 3 * static_cast<int>(i) - 33;
    std::string range = i == 0                       ? std::string("<1e-30")
                        : i + 1 == magnitudes.size() ? std::string("≥1e30")
                                                     : fmt::format("1e{}…1e{}", start, start + 3);
    text += fmt::format("{}: {}, ", range, magnitudes[i]);
  }
  return text;
}

}  // namespace

TensorStatistics statistics(const Tensor& x, Location where) {
  NoRecord pause;
  Tensor here = to_if_needed(tensor_of("statistics", Arg(x, where)), cpu);
  wait_for(here, where);
  const Body& body = here.body();
  TensorStatistics found{.shape = x.shape(), .dtype = x.dtype()};
  Iteration<1> iteration({&body});
  std::int64_t place = 0;
  with_type(body.dtype, [&]<class T>(std::type_identity<T>) {
    iteration.for_each_row([&](const std::int64_t* offset) {
      const T* row = body.as<T>() + offset[0];
      for (std::int64_t i = 0; i < iteration.dims[0]; ++i)
        take_in(found, place++, static_cast<double>(row[i * iteration.strides[0][0]]));
    });
  });
  return found;
}

std::string to_string(const TensorStatistics& statistics) {
  std::string text = fmt::format("{} {}", to_string(statistics.shape), name_of(statistics.dtype));
  if (statistics.shape.numel() == 0) return text + ", no elements";
  if (!std::isnan(statistics.min)) text += fmt::format(", min {:.6g}, max {:.6g}", statistics.min, statistics.max);
  if (is_floating(statistics.dtype)) text += fmt::format(", {} NaN, {} Inf", statistics.nans, statistics.infinities);
  std::string magnitudes = magnitudes_text(statistics.magnitudes);
  if (statistics.zeros != 0) magnitudes = fmt::format("0: {}, ", statistics.zeros) + magnitudes;
  if (!magnitudes.empty()) text += ", |x|: " + magnitudes.substr(0, magnitudes.size() - 2);
  return text;
}

}  // namespace reel::debug
