#include <algorithm>
#include <cstdint>
#include <vector>

#include "../../cuda/device/images.h"
#include "../../cuda/device/matrix_layout.h"
#include "catch.h"

// The layout of operands that is passed to the libraries, which needs no device.

namespace reel_test {

using namespace reel::detail;

namespace {

View view_of(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides) {
  View view{};
  view.dims = dims.data();
  view.strides = strides.data();
  view.rank = static_cast<int>(dims.size());
  return view;
}

}  // namespace

TEST_CASE("each element of a matrix with lines is where they say, and no two are in one place") {
  int with = 0, without = 0;
  for (std::int64_t rows : {1, 2, 5})
    for (std::int64_t columns : {1, 2, 5})
      for (std::int64_t row_stride : {-5, -1, 0, 1, 2, 3, 5, 7})
        for (std::int64_t column_stride : {-5, -1, 0, 1, 2, 3, 5, 7}) {
          CAPTURE(rows, columns, row_stride, column_stride);
          std::vector<std::int64_t> dims{rows, columns}, strides{row_stride, column_stride}, places;
          View view = view_of(dims, strides);
          if (!has_matrix_layout(view)) {
            ++without;
            continue;
          }
          ++with;
          MatrixLayout layout = matrix_layout_of(view);
          bool right = true;
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j) {
              places.push_back(layout.by_columns ? j * layout.leading_dimension + i : i * layout.leading_dimension + j);
              right &= places.back() == i * row_stride + j * column_stride;
            }
          CHECK(right);
          CHECK(layout.leading_dimension >= (layout.by_columns ? rows : columns));
          std::sort(places.begin(), places.end());
          CHECK(std::adjacent_find(places.begin(), places.end()) == places.end());
        }
  CHECK(with > 50);
  CHECK(without > 50);
}

TEST_CASE("matrices that follow each other backwards have no lines") {
  std::vector<std::int64_t> dims{3, 2, 2}, strides{-4, 2, 1}, one{1, 2, 2};
  CHECK(!has_matrix_layout(view_of(dims, strides)));
  CHECK(has_matrix_layout(view_of(one, strides)));
}

TEST_CASE("zeros behind an image make as many results as there are") {
  for (std::int64_t size : {1, 4, 7})
    for (std::int64_t window : {1, 2, 3})
      for (std::int64_t stride : {1, 2, 3})
        for (std::int64_t dilation : {1, 2})
          for (std::int64_t before : {0, 1, 2})
            for (std::int64_t results : {1, 2, 3, 8}) {
              CAPTURE(size, window, stride, dilation, before, results);
              auto count = [&](std::int64_t after) {
                std::int64_t found = 0;
                for (std::int64_t at = -before; at + (window - 1) * dilation < size + after; at += stride) ++found;
                return found;
              };
              std::int64_t least = 0;
              while (least < 100 && count(least) < results) ++least;
              std::int64_t after = padding_after(size, window, results, stride, dilation, before);
              if (count(least) != results) {
                CHECK(after == -1);
              } else {
                REQUIRE(after >= 0);
                CHECK(count(after) == results);
                CHECK(after == (count(before) == results ? before : least));
              }
            }
}

TEST_CASE("images have their channels first or last in memory") {
  std::vector<std::int64_t> first{2, 3, 4, 5}, last{2, 4, 5, 3}, none(4);
  std::int64_t strides[8];
  auto found = [&](const std::vector<std::int64_t>& dims, bool channels_last, bool in_memory) {
    find_image_strides(view_of(dims, none), channels_last, in_memory, strides);
    return std::vector<std::int64_t>(strides, strides + 4);
  };
  CHECK(found(first, false, false) == std::vector<std::int64_t>{60, 20, 5, 1});
  CHECK(found(first, false, true) == std::vector<std::int64_t>{60, 1, 15, 3});
  CHECK(found(last, true, true) == std::vector<std::int64_t>{60, 15, 3, 1});
  CHECK(found(last, true, false) == std::vector<std::int64_t>{60, 5, 1, 20});
}

}  // namespace reel_test
