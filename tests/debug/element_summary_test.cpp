#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <reel/reel.h>

#include "catch.h"
#include "core/storage.h"
#include "kernels/kernel_table.h"

using namespace reel;
using detail::ElementSummary;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

ElementSummary summary_of(const Tensor& x) { return detail::kernels(cpu).summarise(x.body(), true, true); }

// The statistics of numbers, one after another.
ElementSummary expected_of(const Tensor& x) {
  ElementSummary found;
  for (double number : to(x, DType::f64).to_vector<double>()) {
    if (std::isnan(number)) {
      ++found.nans;
    } else if (std::isinf(number)) {
      ++found.infinities;
    } else {
      found.min = std::min(found.min, number);
      found.max = std::max(found.max, number);
      found.sum += number;
      found.squares += number * number;
      found.zeros += number == 0;
    }
  }
  return found;
}

// `magnitude`: the sum of the absolute values, by which the error of a sum is measured.
void check(const Tensor& x) {
  INFO(to_string(x.shape()) << " " << name_of(x.dtype()));
  ElementSummary found = summary_of(x), expected = expected_of(x);
  CHECK(found.min == expected.min);
  CHECK(found.max == expected.max);
  CHECK(found.nans == expected.nans);
  CHECK(found.infinities == expected.infinities);
  CHECK(found.zeros == expected.zeros);
  double magnitude = std::sqrt(expected.squares * static_cast<double>(x.numel()));
  CHECK(std::abs(found.sum - expected.sum) <= 1e-6 * magnitude);
  CHECK(std::abs(found.squares - expected.squares) <= 1e-6 * expected.squares);
}

}  // namespace

TEST_CASE("the summary of a recorded tensor is that of its elements one after another, for any size and dtype") {
  manual_seed(3);
  for (std::int64_t size : {1, 2, 3, 7, 8, 15, 16, 17, 33, 64, 100, 1023, 1025, 4095, 4097, 20'000}) {
    Tensor x = randn({size});
    x.write<float>()[size / 2] = 0;
    check(x);
    for (DType dtype : {DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::i16, DType::i8})
      check(to(x * 3.0f, dtype));
    check(x > 0);
  }
  // Longer than the piece that one thread takes.
  check(randn({300'001}));
}

TEST_CASE("the summary of a recorded tensor does not overflow or vanish where squares of f32 do") {
  manual_seed(4);
  for (float scale : {1e-30f, 1e-22f, 1e-16f, 1e15f, 1e19f, 1e30f, 1e37f}) {
    Tensor x = randn({1000}) * scale;
    check(x);
    CHECK(summary_of(x).squares > 0);
  }
  Tensor mixed = concat({randn({5000}) * 1e-30f, randn({5000}) * 1e30f}, 0);
  check(mixed);
  check(zeros({1000}));
}

TEST_CASE("a single NaN or infinity is counted wherever it is, and left out of the other statistics") {
  manual_seed(5);
  for (std::int64_t place : {0, 1, 15, 16, 500, 4095, 4096, 8191, 8192})
    for (double odd : {std::nan(""), infinity, -infinity}) {
      Tensor x = randn({8193});
      x.write<float>()[place] = static_cast<float>(odd);
      INFO("element " << place << " is " << odd);
      check(x);
      check(transpose(reshape(x, {3, 2731})));
      CHECK(summary_of(x).nans + summary_of(x).infinities == 1);
    }
  check(full({100}, std::nan("")));
  check(full({100}, infinity));
}

TEST_CASE("strides, views and the number of threads change neither the fingerprint nor the statistics of a tensor") {
  manual_seed(6);
  for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
    Tensor x = to(abs(randn({6, 50, 40}) * 20.0f), dtype);
    for (const Tensor& view : {transpose(x, 0, 2), transpose(x, 1, 2), slice(x, 2, 3, 30), slice(x, 1, 7, 8),
                               select(x, 2, 1), expand(slice(x, 0, 0, 1), {4, 50, 40})}) {
      check(view);
      Tensor copied = copy(contiguous(view));
      CHECK(summary_of(view).fingerprint == summary_of(copied).fingerprint);
    }
  }
  Tensor large = randn({500'000});
  ElementSummary whole = summary_of(large);
  int before = thread_count();
  set_thread_count(1);
  ElementSummary alone = summary_of(large);
  set_thread_count(before);
  CHECK(whole.fingerprint == alone.fingerprint);
  CHECK(whole.sum == alone.sum);
  CHECK(whole.squares == alone.squares);
  // Elements that change places are seen.
  Tensor swapped = copy(large);
  std::swap(swapped.write<float>()[3], swapped.write<float>()[400'000]);
  CHECK(summary_of(swapped).fingerprint != whole.fingerprint);
}
