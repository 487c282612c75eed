#include <reel/reel.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "catch.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

// True if a reduction takes an axis of type T.
template <class T>
concept IsAxis = requires(const Tensor& x, T axis) { sum(x, axis); };
static_assert(IsAxis<signed char> && IsAxis<short> && IsAxis<unsigned> && IsAxis<std::int64_t> && IsAxis<std::size_t>);
static_assert(IsAxis<Shape> && IsAxis<std::span<const std::int64_t>> && IsAxis<Axes> && IsAxis<ReduceOptions>);
static_assert(!IsAxis<bool> && !IsAxis<double> && !IsAxis<const char*>);

TEST_CASE("axes of a reduction are a number, a list or all") {
  Tensor x = reshape(arange(24, {.dtype = f64}), {2, 3, 4});
  const std::size_t one = 1;
  const std::int64_t list[] = {1};
  const std::vector<Tensor> over_one[] = {
      {sum(x, 1), sum(x, {1}), sum(x, -2), sum(x, one), sum(x, Shape{1}), sum(x, std::span<const std::int64_t>(list))},
      {mean(x, 1), mean(x, {1}), mean(x, {1}, {})},
      {prod(x, 1), prod(x, {1})},
      {max(x, 1), max(x, {1})},
      {min(x, 1), min(x, {1})},
      {argmax(x, 1), argmax(x, {1}), argmax(x, one), argmax(x, -2)},
      {argmin(x, 1), argmin(x, {1})},
      {any(x, 1), any(x, {1})},
      {all(x, 1), all(x, {1})},
      {count_nonzero(x, 1), count_nonzero(x, {1})},
      {var(x, 1), var(x, {1})},
      {reel::std(x, 1, {.correction = 1}), reel::std(x, {1}, {.correction = 1})},
      {median(x, 1), median(x, {1})},
      {norm(x, 1, {.p = 1}), norm(x, {1}, {.p = 1})},
      {logsumexp(x, 1), logsumexp(x, {1})},
      {quantile(x, 0.5, 1), quantile(x, 0.5, {1})},
  };
  for (const std::vector<Tensor>& alike : over_one)
    for (const Tensor& y : alike) {
      CHECK(y.shape() == Shape{2, 4});
      CHECK(same_bits(y, alike[0]));
    }
  const std::vector<Tensor> over_all[] = {
      {sum(x, {.keepdims = true}), sum(x, {0, 1, 2}, {.keepdims = true}), sum(x, all_axes, {.keepdims = true})},
      {mean(x, {.keepdims = true}), mean(x, {0, 1, 2}, {.keepdims = true})},
      {prod(x, {.keepdims = true}), prod(x, {0, 1, 2}, {.keepdims = true})},
      {max(x, {.keepdims = true}), max(x, {0, 1, 2}, {.keepdims = true})},
      {min(x, {.keepdims = true}), min(x, {0, 1, 2}, {.keepdims = true})},
      {argmax(x, {.keepdims = true}), argmax(x, all_axes, {.keepdims = true})},
      {argmin(x, {.keepdims = true}), argmin(x, all_axes, {.keepdims = true})},
      {any(x, {.keepdims = true}), any(x, {0, 1, 2}, {.keepdims = true})},
      {all(x, {.keepdims = true}), all(x, {0, 1, 2}, {.keepdims = true})},
      {count_nonzero(x, {.keepdims = true}), count_nonzero(x, {0, 1, 2}, {.keepdims = true})},
      {var(x, {.keepdims = true}), var(x, {0, 1, 2}, {.keepdims = true})},
      {reel::std(x, {.correction = 1, .keepdims = true}), reel::std(x, {2, 1, 0}, {.correction = 1, .keepdims = true})},
      {median(x, {.keepdims = true}), median(x, {0, 1, 2}, {.keepdims = true})},
      {norm(x, {.p = 1, .keepdims = true}), norm(x, {0, 1, 2}, {.p = 1, .keepdims = true})},
      {logsumexp(x, {.keepdims = true}), logsumexp(x, {0, 1, 2}, {.keepdims = true})},
      {quantile(x, 0.5, {.keepdims = true}), quantile(x, 0.5, {0, 1, 2}, {.keepdims = true})},
  };
  for (const std::vector<Tensor>& alike : over_all)
    for (const Tensor& y : alike) {
      CHECK(y.shape() == Shape{1, 1, 1});
      CHECK(same_bits(y, alike[0]));
    }
  CHECK(same_bits(sum(x, {}, {.keepdims = true}), x));
  Axes kept = {0, 2};
  CHECK(same_bits(sum(x, kept), sum(x, {0, 2})));
  kept = all_axes;
  CHECK(same_bits(sum(x, kept), sum(x)));
}

}  // namespace reel_test
