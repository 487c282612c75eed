#include "../../device/element_keys.h"
#include "../../device/sorted_rows.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

REEL_DEVICE void copy_element(int size, void* to, std::int64_t to_offset, const void* from, std::int64_t from_offset) {
  auto copy = [=]<class Bits>(Bits) {
    static_cast<Bits*>(to)[to_offset] = static_cast<const Bits*>(from)[from_offset];
  };
  switch (size) {
    case 1: return copy(std::uint8_t{});
    case 2: return copy(std::uint16_t{});
    case 4: return copy(std::uint32_t{});
    default: return copy(std::uint64_t{});
  }
}

// Writes the elements of sorted rows and their indices.
struct ValuesAndPlaces {
  Offsets<3> starts;
  void* values;
  std::int64_t* indices;
  const void* x;
  std::int64_t value_stride, index_stride, step;
  int size;

  ValuesAndPlaces(const View& values, const View& indices, const View& x, int axis)
      : starts(rows_along<3>({&values, &indices, &x}, axis)),
        values(values.data),
        indices(indices.as<std::int64_t>()),
        x(x.data),
        value_stride(values.strides[axis]),
        index_stride(indices.strides[axis]),
        step(x.strides[axis]),
        size(static_cast<int>(size_of(x.dtype))) {}

  template <class Sorted>
  REEL_DEVICE void operator()(std::int64_t row, std::int64_t k, const Sorted& sorted) const {
    std::int64_t at[3], place = sorted.place(k);
    starts.find(row, at);
    copy_element(size, values, at[0] + k * value_stride, x, at[2] + place * step);
    indices[at[1] + k * index_stride] = place;
  }
};

void topk(const View& values, const View& indices, const View& x, int axis, bool largest) {
  if (values.numel == 0) return;
  std::int64_t size = x.dims[axis];
  sort_rows(ElementKeys(x, axis, largest), ValuesAndPlaces(values, indices, x, axis), x.numel / size, size,
            values.dims[axis]);
}

void sort(const View& values, const View& indices, const View& x, int axis, bool descending) {
  topk(values, indices, x, axis, descending);
}

// Counts the elements of a sorted row before each value.
struct Search {
  Offsets<2> starts;  // of rows of the values, and of the corresponding sorted rows
  const void *values, *sorted;
  std::int64_t* out;
  DType dtype;
  std::int64_t length, value_stride, size, step;
  bool right;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t at[2];
    starts.find(i / length, at);
    std::uint64_t key = key_at(dtype, values, at[0] + i % length * value_stride);
    std::int64_t begin = 0;
    for (std::int64_t left = size; left > 0;) {
      std::int64_t half = left / 2;
      std::uint64_t middle = key_at(dtype, sorted, at[1] + (begin + half) * step);
      bool before = right ? middle <= key : middle < key;
      begin += before ? half + 1 : 0;
      left = before ? left - half - 1 : half;
    }
    out[i] = begin;
  }
};

void searchsorted(const View& out, const View& sorted, const View& values, bool right) {
  if (out.numel == 0) return;
  int last = values.rank - 1;
  std::int64_t length = last < 0 ? 1 : values.dims[last], value_stride = last < 0 ? 0 : values.strides[last];
  View row = sorted;
  row.rank = sorted.rank == 1 ? 0 : sorted.rank - 1;
  View heads = values;
  heads.rank = last < 0 ? 0 : last;
  for_each(out.numel, Search{Offsets<2>(Iteration<2>({&heads, &row})), values.data, sorted.data, out.as<std::int64_t>(),
                             values.dtype, length, value_stride, sorted.dims[sorted.rank - 1],
                             sorted.strides[sorted.rank - 1], right});
}

}  // namespace

void fill_sort(KernelTable& table) {
  table.sort = sort;
  table.topk = topk;
  table.searchsorted = searchsorted;
}

}  // namespace reel::detail::inline REEL_TARGET
