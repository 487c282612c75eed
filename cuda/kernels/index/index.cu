#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../device/atomic.h"
#include "../../device/device.h"
#include "../../device/launch.h"
#include "../../runtime/cuda_kernels.h"
#include "index_pairs.h"
#include "indexed_sums.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

struct alignas(16) Sixteen {
  std::uint64_t words[2];
};

// Calls f(std::type_identity<T>()) with a type T of `bytes` bytes, for kernels that only move bits.
template <class F>
void with_unit(std::int64_t bytes, F f) {
  switch (bytes) {
    case 1: return f(std::type_identity<std::uint8_t>());
    case 2: return f(std::type_identity<std::uint16_t>());
    case 4: return f(std::type_identity<std::uint32_t>());
    case 8: return f(std::type_identity<std::uint64_t>());
    default: return f(std::type_identity<Sixteen>());
  }
}

struct CheckIndices {
  Offsets<1> offsets;
  IndexList indices;
  FaultReporter reporter;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t at[1];
    offsets.find(i, at);
    if (indices.place(at[0]) < 0) reporter.report(Fault::index, indices[at[0]], indices.size());
  }
};

bool indices_within(const View& indices, std::int64_t size, std::int64_t&) {
  // Repeated indices, along axes of stride 0, are checked once.
  std::int64_t dims[8], count = 1;
  View once = indices;
  once.dims = dims;
  for (int axis = 0; axis < indices.rank; ++axis) {
    dims[axis] = indices.strides[axis] == 0 && indices.dims[axis] > 1 ? 1 : indices.dims[axis];
    count *= dims[axis];
  }
  for_each(count, CheckIndices{Offsets<1>(Iteration<1>({&once})), IndexList(indices, size), fault_reporter()});
  return true;
}

// listed = indexed
template <class T>
struct Read {
  IndexPairs pairs;
  IndexList indices;
  T* to;
  const T* from;
  FaultReporter reporter;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto pair = pairs.pair(i);
    auto column = pairs.column(pair.column);
    auto listed = pairs.listed(pair.place);
    std::int64_t at = listed.index + column.index, place = indices.place(at);
    if (place < 0) return reporter.report(Fault::index, indices[at], indices.size());
    to[listed.listed + column.listed] = from[column.indexed + place * pairs.step()];
  }
};

void read_pairs(const View& listed, const View& x, const View& indices, IndexAxes axes) {
  std::int64_t bytes = axes.widen(static_cast<std::int64_t>(size_of(x.dtype)), listed.data, x.data);
  IndexPairs pairs(axes);
  with_unit(bytes, [&]<class T>(std::type_identity<T>) {
    for_each(pairs.count(),
             Read<T>{pairs, IndexList(indices, axes.size), listed.as<T>(), x.as<const T>(), fault_reporter()});
  });
}

bool gather(const View& out, const View& x, const View& index, int axis, std::int64_t&) {
  read_pairs(out, x, index, IndexAxes::of_elements(out, x, index, axis));
  return true;
}

bool take(const View& out, const View& x, const View& indices, int axis, std::int64_t&) {
  read_pairs(out, x, indices, IndexAxes::of_rows(out, x, indices, axis));
  return true;
}

// indexed = listed, unless a later element of the list has an equal index.
template <class T>
struct WriteFew {
  IndexPairs pairs;
  IndexList indices;
  T* to;
  const T* from;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto pair = pairs.pair(i);
    auto column = pairs.column(pair.column);
    auto listed = pairs.listed(pair.place);
    std::int64_t place = indices.place(listed.index + column.index);
    if (place < 0) return;
    for (std::int64_t later = pair.place + 1; later < pairs.list_count(); ++later)
      if (indices.place(pairs.listed(later).index + column.index) == place) return;
    to[column.indexed + place * pairs.step()] = from[listed.listed + column.listed];
  }
};

// For each index, of each column if columns have indices of their own, finds the last element of the list with that
// index: its position plus one.
struct FindOwners {
  IndexPairs pairs;
  IndexList indices;
  std::uint32_t* owners;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto pair = pairs.pair_by_columns(i);
    std::int64_t place = indices.place(pairs.listed(pair.place).index + pairs.column(pair.column).index);
    if (place >= 0) raise_to(owners + pair.column * indices.size() + place, static_cast<std::uint32_t>(pair.place + 1));
  }
};

template <class T>
struct WriteOwned {
  IndexPairs pairs;
  IndexList indices;
  T* to;
  const T* from;
  const std::uint32_t* owners;
  bool are_rows;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto pair = pairs.pair(i);
    auto column = pairs.column(pair.column);
    auto listed = pairs.listed(pair.place);
    std::int64_t place = indices.place(listed.index + column.index);
    if (place < 0) return;
    std::uint32_t owner = owners[(are_rows ? 0 : pair.column * indices.size()) + place];
    if (owner != static_cast<std::uint32_t>(pair.place + 1)) return;
    to[column.indexed + place * pairs.step()] = from[listed.listed + column.listed];
  }
};

void write_pairs(const View& out, const View& listed, const View& index, IndexAxes axes) {
  std::int64_t bytes = axes.widen(static_cast<std::int64_t>(size_of(out.dtype)), listed.data, out.data);
  IndexPairs pairs(axes);
  if (pairs.count() == 0 || axes.size == 0) return;
  IndexList indices(index, axes.size);
  if (pairs.are_few())
    return with_unit(bytes, [&]<class T>(std::type_identity<T>) {
      for_each(pairs.count(), WriteFew<T>{pairs, indices, out.as<T>(), listed.as<const T>()});
    });
  check_countable(pairs.list_count());
  std::int64_t lists = axes.are_rows() ? 1 : pairs.columns();
  std::size_t owner_bytes = static_cast<std::size_t>(lists * axes.size) * sizeof(std::uint32_t);
  Scratch owners(owner_bytes);
  fill_with_zeros(owners.as<void>(), owner_bytes);
  for_each(lists * pairs.list_count(), FindOwners{pairs, indices, owners.as<std::uint32_t>()});
  with_unit(bytes, [&]<class T>(std::type_identity<T>) {
    for_each(pairs.count(), WriteOwned<T>{pairs, indices, out.as<T>(), listed.as<const T>(),
                                          owners.as<const std::uint32_t>(), axes.are_rows()});
  });
}

void scatter(const View& out, const View& source, const View& index, int axis) {
  write_pairs(out, source, index, IndexAxes::of_elements(source, out, index, axis));
}

void index_copy(const View& out, const View& source, const View& indices, int axis) {
  write_pairs(out, source, indices, IndexAxes::of_rows(source, out, indices, axis));
}

void scatter_add(const View& out, const View& updates, const View& index, int axis) {
  add_pairs(out, updates, index, IndexAxes::of_elements(updates, out, index, axis));
}

void index_add(const View& out, const View& source, const View& indices, int axis) {
  add_pairs(out, source, indices, IndexAxes::of_rows(source, out, indices, axis));
}

}  // namespace

void fill_index(KernelTable& table) {
  table.indices_within = indices_within;
  table.gather = gather;
  table.scatter = scatter;
  table.scatter_add = scatter_add;
  table.take = take;
  table.index_copy = index_copy;
  table.index_add = index_add;
}

}  // namespace reel::detail::inline REEL_TARGET
