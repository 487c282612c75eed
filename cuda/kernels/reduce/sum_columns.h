#pragma once

#include <cstdint>

#include "../../device/device.h"
#include "../../device/launch.h"

// Sums over the rows of several matrices of one width, in an order that depends on their size only: first within blocks
// of rows, then over the blocks.

namespace reel::detail::inline REEL_TARGET {

constexpr int columns_of_group = 32, rows_at_once = 8;

/// term(r, c, values) gives row r, column c of all `count` matrices. `result(k, c, sum)` receives the sums of matrix k.
template <class W, int count, class Term, class Result>
struct SumColumns {
  Term term;
  Result result;
  std::int64_t rows, columns, rows_of_block;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t tiles = (columns + columns_of_group - 1) / columns_of_group;
    std::int64_t block = group.index() / tiles, first_column = group.index() % tiles * columns_of_group;
    std::int64_t begin = block * rows_of_block, end = begin + rows_of_block < rows ? begin + rows_of_block : rows;
    double* partial = group.template shared<double>(count * rows_at_once * columns_of_group);
    group.each([&](int thread) {
      std::int64_t column = first_column + thread % columns_of_group;
      W sums[count] = {};
      if (column < columns)
        for (std::int64_t row = begin + thread / columns_of_group; row < end; row += rows_at_once) {
          W values[count];
          term(row, column, values);
          for (int k = 0; k < count; ++k) sums[k] += values[k];
        }
      for (int k = 0; k < count; ++k)
        partial[k * rows_at_once * columns_of_group + thread] = static_cast<double>(sums[k]);
    });
    group.each([&](int thread) {
      std::int64_t column = first_column + thread;
      if (thread >= columns_of_group || column >= columns) return;
      for (int k = 0; k < count; ++k) {
        double sum = 0;
        for (int part = 0; part < rows_at_once; ++part)
          sum += partial[(k * rows_at_once + part) * columns_of_group + thread];
        result(block, k, column, sum);
      }
    });
  }
};

/// Stores the sums of each block separately.
struct BlockSums {
  double* kept;  // (blocks, count, columns)
  std::int64_t count, columns;
  REEL_DEVICE void operator()(std::int64_t block, int k, std::int64_t column, double sum) const {
    kept[(block * count + k) * columns + column] = sum;
  }
  template <int sums>
  REEL_DEVICE void read(std::int64_t block, std::int64_t column, double (&values)[sums]) const {
    for (int k = 0; k < sums; ++k) values[k] = kept[(block * count + k) * columns + column];
  }
};

struct SumsOfBlocks {
  BlockSums blocks;
  template <int sums>
  REEL_DEVICE void operator()(std::int64_t block, std::int64_t column, double (&values)[sums]) const {
    blocks.read(block, column, values);
  }
};

template <class W, int count, class Term, class Result>
void launch_sum_columns(const Term& term, const Result& result, std::int64_t rows, std::int64_t columns,
                        std::int64_t blocks, std::int64_t rows_of_block) {
  std::int64_t tiles = (columns + columns_of_group - 1) / columns_of_group;
  for_each_group(tiles * blocks, columns_of_group * rows_at_once,
                 count * rows_at_once * columns_of_group * sizeof(double),
                 SumColumns<W, count, Term, Result>{term, result, rows, columns, rows_of_block});
}

/// Calls result(0, k, column, sum) for each matrix and column.
template <class W, int count, class Term, class Result>
void sum_columns(const Term& term, const Result& result, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t few = 128, most_blocks = 256;
  std::int64_t rows_of_block = (rows + most_blocks - 1) / most_blocks;
  rows_of_block = rows_of_block < few ? few : rows_of_block;
  std::int64_t blocks = (rows + rows_of_block - 1) / rows_of_block;
  if (blocks <= 1) return launch_sum_columns<W, count>(term, result, rows, columns, 1, rows_of_block);
  Scratch scratch(static_cast<std::size_t>(blocks * count * columns) * sizeof(double));
  BlockSums kept{scratch.as<double>(), count, columns};
  launch_sum_columns<W, count>(term, kept, rows, columns, blocks, rows_of_block);
  launch_sum_columns<double, count>(SumsOfBlocks{kept}, result, blocks, columns, 1, blocks);
}

}  // namespace reel::detail::inline REEL_TARGET
