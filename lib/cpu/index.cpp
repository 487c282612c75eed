#include <cstring>
#include <vector>

#include "../core/convert.h"
#include "../core/dispatch.h"
#include "../core/iteration.h"
#include "cpu_kernels.h"

namespace reel::detail {
namespace {

// Calls f(index) for every index in row-major order until it returns false.
template <class F>
bool for_each_index(const View& indices, F f) {
  Iteration<1> iteration({&indices});
  bool going = true;
  auto run = [&](const auto* from) {
    iteration.for_each_row([&](const std::int64_t* offset) {
      for (std::int64_t i = 0; going && i < iteration.dims[0]; ++i)
        going = f(static_cast<std::int64_t>(from[offset[0] + i * iteration.strides[0][0]]));
    });
  };
  if (indices.dtype == DType::i64)
    run(indices.as<const std::int64_t>());
  else
    run(indices.as<const std::int32_t>());
  return going;
}

bool indices_within(const View& indices, std::int64_t size, std::int64_t& bad) {
  return for_each_index(indices, [&](std::int64_t index) {
    bad = index;
    return index >= -size && index < size;
  });
}

// Calls f(offset in a, offset in b) for every element of `index`: `a` is laid out as the index; in `b` the coordinate
// along the axis is the index itself.
template <class F>
void for_each_indexed(const View& index, const View& a, const View& b, int axis, F f) {
  std::int64_t at[8] = {};
  std::int64_t from = 0, here = 0, there = 0, size = b.dims[axis];
  for (std::int64_t count = 0; count < index.numel; ++count) {
    std::int64_t j = index.dtype == DType::i64 ? index.as<std::int64_t>()[from] : index.as<std::int32_t>()[from];
    f(here, there + (j < 0 ? j + size : j) * b.strides[axis]);
    for (int k = index.rank; k-- > 0;) {
      from += index.strides[k];
      here += a.strides[k];
      if (k != axis) there += b.strides[k];
      if (++at[k] < index.dims[k]) break;
      from -= index.strides[k] * index.dims[k];
      here -= a.strides[k] * index.dims[k];
      if (k != axis) there -= b.strides[k] * index.dims[k];
      at[k] = 0;
    }
  }
}

template <class T>
void gather_typed(const View& out, const View& x, const View& index, int axis) {
  for_each_indexed(index, out, x, axis, [&](std::int64_t to, std::int64_t from) { out.as<T>()[to] = x.as<T>()[from]; });
}

bool gather(const View& out, const View& x, const View& index, int axis, std::int64_t& bad) {
  if (!indices_within(index, x.dims[axis], bad)) return false;
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) { gather_typed<T>(out, x, index, axis); });
  return true;
}

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return static_cast<T>(a + b);
}

// Halves are summed in f32 and rounded once: `add` gets an f32 stand-in for `out`.
template <class Half, class Add>
void add_wide(const View& out, Add add) {
  std::vector<float> sums(out.as<Half>(), out.as<Half>() + out.numel);
  View wide = out;
  wide.data = sums.data();
  wide.dtype = DType::f32;
  add(wide);
  for (std::size_t i = 0; i < sums.size(); ++i) out.as<Half>()[i] = Half(sums[i]);
}

template <class T>
void scatter_add_typed(const View& out, const View& updates, const View& index, int axis) {
  if constexpr (is_half_v<T>)
    if (out.dtype != DType::f32)
      return add_wide<T>(out, [&](const View& wide) { scatter_add_typed<T>(wide, updates, index, axis); });
  using Sum = std::conditional_t<is_half_v<T>, float, T>;
  for_each_indexed(index, updates, out, axis, [&](std::int64_t from, std::int64_t to) {
    Sum& sum = out.as<Sum>()[to];
    sum = plus(sum, static_cast<Sum>(updates.as<T>()[from]));
  });
}

void scatter_add(const View& out, const View& updates, const View& index, int axis) {
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) { scatter_add_typed<T>(out, updates, index, axis); });
}

bool embedding(const View& out, const View& table, const View& indices, std::int64_t& bad) {
  std::int64_t rows = table.dims[0], width = table.dims[1];
  if (!indices_within(indices, rows, bad)) return false;
  std::size_t element = size_of(table.dtype);
  auto* to = out.as<char>();
  for_each_index(indices, [&](std::int64_t index) {
    const char* row =
        table.as<char>() + (index < 0 ? index + rows : index) * table.strides[0] * static_cast<std::int64_t>(element);
    if (table.strides[1] == 1) {
      std::memcpy(to, row, static_cast<std::size_t>(width) * element);
    } else {
      for (std::int64_t i = 0; i < width; ++i)
        std::memcpy(to + i * static_cast<std::int64_t>(element),
                    row + i * table.strides[1] * static_cast<std::int64_t>(element), element);
    }
    to += width * static_cast<std::int64_t>(element);
    return true;
  });
  return true;
}

// `gradient` has one row of `width` for each index, in row-major order, with strides of its own.
template <class T>
void embedding_gradient_typed(const View& table_gradient, const View& gradient, const View& indices) {
  if constexpr (is_half_v<T>)
    if (table_gradient.dtype != DType::f32)
      return add_wide<T>(table_gradient,
                         [&](const View& wide) { embedding_gradient_typed<T>(wide, gradient, indices); });
  using Sum = std::conditional_t<is_half_v<T>, float, T>;
  std::int64_t rows = table_gradient.dims[0], width = table_gradient.dims[1];
  View heads = gradient;
  --heads.rank;
  std::int64_t step = gradient.strides[gradient.rank - 1];
  auto add_rows = [&](const auto* index) {
    Iteration<2> iteration({&heads, &indices});
    iteration.for_each_row([&](const std::int64_t* offset) {
      for (std::int64_t k = 0; k < iteration.dims[0]; ++k) {
        std::int64_t row = index[offset[1] + k * iteration.strides[1][0]];
        Sum* sum = table_gradient.as<Sum>() + (row < 0 ? row + rows : row) * width;
        const T* from = gradient.as<T>() + offset[0] + k * iteration.strides[0][0];
        if (step == 1)
          for (std::int64_t i = 0; i < width; ++i) sum[i] = plus(sum[i], static_cast<Sum>(from[i]));
        else
          for (std::int64_t i = 0; i < width; ++i) sum[i] = plus(sum[i], static_cast<Sum>(from[i * step]));
      }
    });
  };
  if (indices.dtype == DType::i64)
    add_rows(indices.as<const std::int64_t>());
  else
    add_rows(indices.as<const std::int32_t>());
}

void embedding_gradient(const View& table_gradient, const View& gradient, const View& indices) {
  with_floating(gradient.dtype, [&]<class T>(std::type_identity<T>) {
    embedding_gradient_typed<T>(table_gradient, gradient, indices);
  });
}

}  // namespace

void fill_index(KernelTable& table) {
  table.indices_within = indices_within;
  table.gather = gather;
  table.scatter_add = scatter_add;
  table.embedding = embedding;
  table.embedding_gradient = embedding_gradient;
}

}  // namespace reel::detail
