#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <hwy/highway.h>

#include "../../../core/convert.h"
#include "../../../core/dtype_dispatch.h"
#include "../products/transpose.h"
#include "../vector/copy_every.h"
#include "../vector/half_rows.h"

// Copies of strided elements into tiles that stay in the first-level cache. This header is compiled once per instruction
// set.

namespace reel::detail::inline REEL_TARGET {

namespace hn = hwy::HWY_NAMESPACE;

/// Some axes of a tensor, added from the innermost outwards; adjacent ones are joined where their strides allow it.
class JoinedAxes {
 public:
  void add(std::int64_t dim, std::int64_t stride) {
    count_ *= dim;
    if (rank_ > 0 && stride == strides_[rank_ - 1] * dims_[rank_ - 1]) {
      dims_[rank_ - 1] *= dim;
      return;
    }
    dims_[rank_] = dim;
    strides_[rank_++] = stride;
  }
  void add(const JoinedAxes& outer) {
    for (int k = 0; k < outer.rank_; ++k) add(outer.dims_[k], outer.strides_[k]);
  }
  std::int64_t count() const { return count_; }
  /// True if the elements are one stride apart from each other, the innermost one.
  bool is_even() const { return rank_ <= 1; }
  std::int64_t stride() const { return strides_[0]; }

  std::int64_t offset(std::int64_t position) const {
    if (rank_ == 1) return position * strides_[0];
    std::int64_t offset = 0;
    for (int k = 0; k < rank_; ++k) {
      offset += position % dims_[k] * strides_[k];
      position /= dims_[k];
    }
    return offset;
  }

  /// Calls f(position, offset, length) for the parts of [first, first + count) along the innermost axis.
  template <class F>
  void for_each_part(std::int64_t first, std::int64_t count, F f) const {
    for (std::int64_t end = first + count, length; first < end; first += length) {
      length = std::min(end - first, dims_[0] - first % dims_[0]);
      f(first, offset(first), length);
    }
  }

 private:
  int rank_ = 0;
  std::int64_t count_ = 1;
  std::int64_t dims_[8] = {1}, strides_[8] = {1};
};

/// Rows and columns of a matrix in memory.
struct MatrixForm {
  std::int64_t rows, row_stride, columns, column_stride;
};

// Copies pairs, triples or fours that are adjacent: to[k ld + j] = from[n j + k].
template <int n, class T>
void copy_interleaved(T* to, std::int64_t ld, const T* from, std::int64_t count) {
  const hn::ScalableTag<T> tag;
  constexpr std::int64_t lanes = HWY_LANES(T);
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    hn::Vec<decltype(tag)> parts[4];
    if constexpr (n == 2) hn::LoadInterleaved2(tag, from + n * j, parts[0], parts[1]);
    if constexpr (n == 3) hn::LoadInterleaved3(tag, from + n * j, parts[0], parts[1], parts[2]);
    if constexpr (n == 4) hn::LoadInterleaved4(tag, from + n * j, parts[0], parts[1], parts[2], parts[3]);
    for (int k = 0; k < n; ++k) hn::StoreU(parts[k], tag, to + k * ld + j);
  }
  for (; j < count; ++j)
    for (int k = 0; k < n; ++k) to[k * ld + j] = from[n * j + k];
}

// The compiler widens bools one by one.
inline void widen(std::int64_t* to, const bool* from, std::int64_t count) {
  const hn::ScalableTag<std::int64_t> tag;
  const hn::Rebind<std::int32_t, decltype(tag)> half;
  const hn::Rebind<std::uint8_t, decltype(tag)> bytes;
  constexpr std::int64_t lanes = HWY_LANES(std::int64_t);
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    auto some = hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(from) + j);
    hn::StoreU(hn::PromoteTo(tag, hn::PromoteTo(half, some)), tag, to + j);
  }
  for (; j < count; ++j) to[j] = from[j];
}

/// Converts adjacent elements.
template <class Wide, class T>
void read_row(Wide* __restrict to, const T* from, std::int64_t count) {
  if constexpr (is_half_v<T> && std::is_same_v<Wide, float>)
    widen_row(to, from, count);
  else
    for (std::int64_t j = 0; j < count; ++j) to[j] = convert<Wide>(from[j]);
}

/// to[i ld + j] = from[i row_stride + j column_stride], converted.
template <class Wide, class T>
void copy_matrix(Wide* __restrict to, std::int64_t ld, const T* from, MatrixForm form) {
  auto [rows, row_stride, columns, column_stride] = form;
  if (columns == 1 && ld == 1) {  // a line along the rows
    columns = rows;
    column_stride = row_stride;
    rows = 1;
  } else if (column_stride == 1 && row_stride == columns && ld == columns) {  // rows without gaps
    columns *= rows;
    rows = 1;
  }
  if constexpr (std::is_same_v<Wide, T>) {
    if (row_stride == 1 && rows > 1 && columns > 1) {
      if (rows == column_stride) {
        if (rows == 2) return copy_interleaved<2>(to, ld, from, columns);
        if (rows == 3) return copy_interleaved<3>(to, ld, from, columns);
        if (rows == 4) return copy_interleaved<4>(to, ld, from, columns);
      }
      return transpose_panel(to, ld, from, column_stride, rows, columns, 0);
    }
    for (; rows > 0 && (column_stride == 2 || column_stride == 3) && columns >= 16;
         --rows, to += ld, from += row_stride)
      column_stride == 2 ? copy_every<2>(to, from, columns) : copy_every<3>(to, from, columns);
  }
  if constexpr (std::is_same_v<Wide, std::int64_t> && std::is_same_v<T, bool>)
    if (column_stride == 1) {
      for (std::int64_t i = 0; i < rows; ++i) widen(to + i * ld, from + i * row_stride, columns);
      return;
    }
  if (column_stride == 1) {
    for (std::int64_t i = 0; i < rows; ++i) read_row(to + i * ld, from + i * row_stride, columns);
  } else if (std::abs(column_stride) <= std::abs(row_stride)) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        to[i * ld + j] = static_cast<Wide>(from[i * row_stride + j * column_stride]);
  } else {
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < rows; ++i)
        to[i * ld + j] = static_cast<Wide>(from[i * row_stride + j * column_stride]);
  }
}

/// Calls f(place, offset, form) for the parts of rows [first, first + count) of `width` columns that are matrices in memory;
/// `place` is that of the part's first element in a tile without gaps.
template <class F>
void for_each_block(const JoinedAxes& rows, std::int64_t first, std::int64_t count, const JoinedAxes& columns,
                    std::int64_t first_column, std::int64_t width, F f) {
  columns.for_each_part(first_column, width, [&](std::int64_t column, std::int64_t across, std::int64_t length) {
    rows.for_each_part(first, count, [&](std::int64_t row, std::int64_t along, std::int64_t height) {
      f((row - first) * width + column - first_column, along + across,
        MatrixForm{height, rows.stride(), length, columns.stride()});
    });
  });
}

/// The elements of a tensor, converted to the type in which a kernel computes.
template <class Wide>
class Reader {
 public:
  explicit Reader(const View& x) : data_(x.data) {
    if (x.dtype == dtype_of<Wide>()) plain_ = x.as<Wide>();
    auto copy_from = [&]<class T>(std::type_identity<T>) {
      copy_ = [](Wide* to, std::int64_t ld, const void* data, std::int64_t offset, MatrixForm form) {
        copy_matrix(to, ld, static_cast<const T*>(data) + offset, form);
      };
    };
    if constexpr (std::is_integral_v<Wide>) {
      x.dtype == DType::boolean ? copy_from(std::type_identity<bool>()) : with_integer(x.dtype, copy_from);
    } else {
      with_floating(x.dtype, [&]<class T>(std::type_identity<T> type) {
        if constexpr (sizeof(T) <= sizeof(Wide)) copy_from(type);  // f64 is never narrowed
      });
    }
  }

  /// The data, if no conversion is needed.
  const Wide* plain() const { return plain_; }

  /// Copies rows [first, first + count) of `width` columns into a tile without gaps.
  void gather(Wide* tile, std::int64_t offset, const JoinedAxes& rows, std::int64_t first, std::int64_t count,
              const JoinedAxes& columns, std::int64_t first_column, std::int64_t width) const {
    for_each_block(rows, first, count, columns, first_column, width,
                   [&](std::int64_t place, std::int64_t at, MatrixForm form) {
                     copy_(tile + place, width, data_, offset + at, form);
                   });
  }

 private:
  const void* data_;
  void (*copy_)(Wide* to, std::int64_t ld, const void* data, std::int64_t offset, MatrixForm form);
  const Wide* plain_ = nullptr;
};

/// Converts adjacent elements.
template <class T, class Wide>
void write_row(T* to, const Wide* from, std::int64_t count) {
  if constexpr (is_half_v<T> && std::is_same_v<Wide, float>)
    narrow_row(to, from, count);
  else
    for (std::int64_t j = 0; j < count; ++j) to[j] = convert<T>(from[j]);
}

/// to[i row_stride + j column_stride] = from[i ld + j], converted.
template <class T, class Wide>
void write_matrix(T* to, MatrixForm form, const Wide* from, std::int64_t ld) {
  auto [rows, row_stride, columns, column_stride] = form;
  if (column_stride == 1 && row_stride == columns && ld == columns) return write_row(to, from, rows * columns);
  for (std::int64_t i = 0; i < rows; ++i, to += row_stride, from += ld) {
    if (column_stride == 1)
      write_row(to, from, columns);
    else
      for (std::int64_t j = 0; j < columns; ++j) to[j * column_stride] = convert<T>(from[j]);
  }
}

/// Writes the elements of a tensor, converted from the type in which a kernel computes.
template <class W>
class Writer {
 public:
  explicit Writer(const View& out) : data_(out.data) {
    auto write_as = [&]<class T>(std::type_identity<T>) {
      write_ = [](void* data, std::int64_t offset, MatrixForm form, const W* from, std::int64_t ld) {
        write_matrix(static_cast<T*>(data) + offset, form, from, ld);
      };
    };
    if constexpr (std::is_integral_v<W>)
      out.dtype == DType::boolean ? write_as(std::type_identity<bool>()) : with_integer(out.dtype, write_as);
    else
      with_floating(out.dtype, [&]<class T>(std::type_identity<T> type) {
        if constexpr (sizeof(T) <= sizeof(W)) write_as(type);
      });
  }

  /// Writes a tile without gaps to rows [first, first + count) of `width` columns.
  void scatter(const W* tile, std::int64_t offset, const JoinedAxes& rows, std::int64_t first, std::int64_t count,
               const JoinedAxes& columns, std::int64_t first_column, std::int64_t width) const {
    for_each_block(rows, first, count, columns, first_column, width,
                   [&](std::int64_t place, std::int64_t at, MatrixForm form) {
                     write_(data_, offset + at, form, tile + place, width);
                   });
  }

 private:
  void* data_;
  void (*write_)(void* data, std::int64_t offset, MatrixForm form, const W* from, std::int64_t ld);
};

}  // namespace reel::detail::inline REEL_TARGET
