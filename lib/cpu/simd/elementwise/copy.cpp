#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../../core/convert.h"
#include "../../../core/dtype_dispatch.h"
#include "../../../core/halves.h"
#include "../../../core/iteration.h"
#include "../../../core/threads/parallel.h"
#include "../instruction_set.h"
#include "../products/transpose.h"
#include "../vector/block_loop.h"
#include "../vector/copy_every.h"
#include "../vector/half_rows.h"
#include "../vector/streaming.h"
#include "elementwise.h"

// Copies are memory-bound: each byte is read and written once. See "Copies" in tools/benchmark/README.md.

namespace reel::detail::inline REEL_TARGET {
namespace {

// Contiguous elements take far less than a nanosecond each: this many, some 25 µs, are worth a thread.
template <class T>
constexpr std::int64_t move_grain = (1 << 19) / sizeof(T);

// The number of elements that stay in a second-level cache.
template <class T>
constexpr std::int64_t cached = (1 << 19) / sizeof(T);

constexpr std::int64_t convert_block = 256;

// Returns true if x, which was rounded to `single`, may round otherwise than that to a half: between two halves, or lost as
// a subnormal number.
template <class To, class From>
bool may_round_twice(float single, From x) {
  auto bits = std::bit_cast<std::uint32_t>(single), magnitude = bits & 0x7fffffff;
  bool is_lost = magnitude < 0x00800000 && x != 0;
  if constexpr (std::is_same_v<To, BFloat16>) return is_lost || (bits & 0xffff) == 0x8000;
  float halves = std::min(0x1p11f, std::abs(single) * 0x1p25f);  // of the smallest f16; NaN is none
  auto whole = static_cast<std::int32_t>(halves);
  bool between = halves < 0x1p11f ? static_cast<float>(whole) == halves && (whole & 1) : (bits & 0x1fff) == 0x1000;
  return is_lost || between;
}

// Numbers of more bits than f32 has are rounded to halves in blocks, through f32 but for the few that would be rounded twice.
template <class To, class From>
constexpr bool rounds_in_blocks =
    is_half_v<To> && (std::is_same_v<From, double> || (std::is_integral_v<From> && sizeof(From) >= 4));

template <class To, class From>
void round_row(To* to, const From* from, std::int64_t count) {
  alignas(64) float single[convert_block];
  for (std::int64_t start = 0, here; start < count; start += here) {
    here = std::min(convert_block, count - start);
    std::uint32_t twice = 0;
    for (std::int64_t i = 0; i < here; ++i) {
      single[i] = static_cast<float>(from[start + i]);
      twice |= static_cast<std::uint32_t>(may_round_twice<To>(single[i], from[start + i]));
    }
    narrow_row(to + start, single, here);
    for (std::int64_t i = 0; twice && i < here; ++i)
      if (may_round_twice<To>(single[i], from[start + i])) to[start + i] = convert<To>(from[start + i]);
  }
}

// Whether no number, cut to an integer, exceeds the range of To.
template <class To, class From>
bool fits(const From* from, std::int64_t count) {
  using V = Vector<From>;
  constexpr auto end = static_cast<double>(std::uint64_t{1} << std::numeric_limits<To>::digits);
  // Unsigned: what lies above −1 is cut to 0.
  const V low(std::is_signed_v<To> ? -end : std::nextafter(From(-1), From(0))), high(end);
  auto inside = V(0) == V(0);
  std::int64_t i = 0;
  for (; i + V::lanes <= count; i += V::lanes) {
    V x = V::load(from + i);
    inside = hn::And(inside, hn::And(x >= low, x < high));
  }
  V x = V::load(from + i, count - i);
  return hn::AllTrue(typename V::Tag(), hn::And(inside, hn::And(x >= low, x < high)));
}

// In blocks, since few have numbers beyond the range, whose ends they become, or NaN, which becomes 0.
template <class To, class From>
void truncate_row(To* to, const From* from, std::int64_t count) {
  for (std::int64_t start = 0, here; start < count; start += here) {
    here = std::min(convert_block, count - start);
    if (fits<To>(from + start, here))
      for (std::int64_t i = start; i < start + here; ++i) to[i] = static_cast<To>(from[i]);
    else
      for (std::int64_t i = start; i < start + here; ++i) to[i] = convert<To>(from[i]);
  }
}

template <class To, class From>
void convert_elements(void* out, const void* const* inputs, std::int64_t count) {
  To* to = static_cast<To*>(out);
  // The compiler makes vectors of bytes, but not of bools.
  using Element = std::conditional_t<std::is_same_v<From, bool>, std::uint8_t, From>;
  const auto* from = static_cast<const Element*>(inputs[0]);
  if constexpr (rounds_in_blocks<To, Element>)
    round_row(to, from, count);
  else if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool> && std::is_floating_point_v<From>)
    truncate_row(to, from, count);
  else if constexpr (std::is_same_v<To, float> && is_half_v<From>)
    widen_row(to, from, count);
  else if constexpr (is_half_v<From>)
    for (std::int64_t start = 0; start < count; start += convert_block) {
      float single[convert_block];
      const void* input = single;
      std::int64_t here = std::min(convert_block, count - start);
      widen_row(single, from + start, here);
      convert_elements<To, float>(to + start, &input, here);
    }
  else if constexpr (is_half_v<To> && std::is_same_v<From, float>)
    narrow_row(to, from, count);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert<To>(from[i]);
}

BlockLoop block_converter(DType to, DType from) {
  return with_type(to, [&]<class To>(std::type_identity<To>) {
    return with_type(from,
                     []<class From>(std::type_identity<From>) -> BlockLoop { return convert_elements<To, From>; });
  });
}

template <class T>
void move_row(T* to, std::int64_t to_stride, const T* from, std::int64_t from_stride, std::int64_t count,
              bool streams) {
  if (count < 16) {  // a call would cost more
    for (std::int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  } else if (to_stride == 1 && from_stride == 1) {
    std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    if (streams)
      copy_streaming(to, from, bytes);
    else
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill_n(to, count, *from);
  } else if (to_stride == 1 && from_stride == 2) {
    copy_every<2>(to, from, count);
  } else if (to_stride == 1 && from_stride == -1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[-i];
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

// Calls row(offsets, count) for all elements, on several threads if there are many.
template <int operand_count, class Row>
void for_each_row(const Iteration<operand_count>& iteration, std::int64_t elements, std::int64_t grain, Row row) {
  if (elements <= grain)
    iteration.for_each_row([&](const std::int64_t* offsets) { row(offsets, iteration.dims[0]); });
  else
    parallel_for(elements, grain, [&](std::int64_t begin, std::int64_t end) {
      iteration.for_each_part(begin, end, row);
      end_streaming();
    });
}

// An axis along which an operand has stride 1, long enough for a panel; −1 if there is none.
int unit_axis(const Iteration<2>& iteration, int operand) {
  for (int axis = 0; axis < iteration.rank; ++axis)
    if (iteration.strides[operand][axis] == 1 && iteration.dims[axis] >= 8) return axis;
  return -1;
}

void swap_axes(Iteration<2>& iteration, int a, int b) {
  std::swap(iteration.dims[a], iteration.dims[b]);
  for (auto& strides : iteration.strides) std::swap(strides[a], strides[b]);
}

// Reverses the order of an axis in both operands, so that a stride of -1 becomes 1.
template <class T>
void reverse_axis(Iteration<2>& iteration, int axis, T*& to, const T*& from) {
  to += (iteration.dims[axis] - 1) * iteration.strides[0][axis];
  from += (iteration.dims[axis] - 1) * iteration.strides[1][axis];
  for (auto& strides : iteration.strides) strides[axis] = -strides[axis];
}

// Whether each element is written several times, at most as often as a vector has elements, and nothing lies between.
bool repeats_each(const Iteration<2>& iteration, std::int64_t lanes) {
  return iteration.rank == 2 && iteration.strides[0][0] == 1 && iteration.strides[1][0] == 0 &&
         iteration.strides[0][1] == iteration.dims[0] && iteration.dims[0] > 0 && iteration.dims[0] <= lanes;
}

template <class T>
void repeat_each(T* to, const T* from, const Iteration<2>& iteration) {
  constexpr std::int64_t lanes = Vector<T>::lanes;
  std::int64_t width = iteration.dims[0], step = iteration.strides[1][1];
  parallel_for(iteration.dims[1], parallel_grain / width, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t row = begin;
    // Whole vectors, of which the next one overwrites what is too much.
    for (; (end - row) * width >= lanes; ++row) Vector<T>::repeat(from[row * step]).store(to + row * width);
    for (; row < end; ++row) std::fill_n(to + row * width, width, from[row * step]);
  });
}

template <class T>
void move_all(const View& out, const View& x) {
  T* to = out.as<T>();
  const T* from = x.as<T>();
  Iteration<2> iteration({&out, &x});
  bool streams = out.numel * static_cast<std::int64_t>(sizeof(T)) >= streaming_bytes;
  if (iteration.rank > 1 && out.numel != 0) {
    int along = unit_axis(iteration, 0);
    if (along >= 0) {
      swap_axes(iteration, 0, along);  // the order of the axes does not matter
      for (int axis = 1; axis < iteration.rank; ++axis)
        if (iteration.strides[1][axis] == -1) reverse_axis(iteration, axis, to, from);
      int across = unit_axis(iteration, 1);
      if (across > 0) return copy_transposed(to, from, iteration, across, streams);
    }
  }
  if constexpr (sizeof(T) >= 4)
    if (repeats_each(iteration, Vector<T>::lanes)) return repeat_each(to, from, iteration);
  // Rows of few elements cost more than several passes over what stays in a cache.
  if (iteration.rank > 1 && iteration.dims[0] < 8 && iteration.dims[1] >= 32 && out.numel <= cached<T>)
    swap_axes(iteration, 0, 1);
  std::int64_t to_stride = iteration.strides[0][0], from_stride = iteration.strides[1][0];
  bool plain = to_stride == 1 && from_stride == 1 && iteration.dims[0] >= 64;
  for_each_row(iteration, out.numel, plain ? move_grain<T> : parallel_grain,
               [&](const std::int64_t* offsets, std::int64_t count) {
                 move_row(to + offsets[0], to_stride, from + offsets[1], from_stride, count, streams);
               });
}

// Rows of contiguous parts alternately, so that the result is written from front to back.
template <class T>
void join_rows(const View& out, std::span<const View* const> parts, std::int64_t rows) {
  bool streams = out.numel * static_cast<std::int64_t>(sizeof(T)) >= streaming_bytes;
  std::int64_t length = out.numel / rows;
  parallel_for(rows, std::max<std::int64_t>(move_grain<T> / length, 1), [&](std::int64_t begin, std::int64_t end) {
    T* to = out.as<T>() + begin * length;
    for (std::int64_t row = begin; row < end; ++row)
      for (const View* part : parts) {
        std::int64_t count = part->numel / rows;
        move_row(to, 1, part->as<T>() + row * count, 1, count, streams);
        to += count;
      }
    if (streams) end_streaming();
  });
}

// Writes the parts one after the other.
template <class T>
void join_parts(const View& out, std::span<const View* const> parts, int axis) {
  std::int64_t start = 0;
  for (const View* part : parts) {
    std::int64_t strides[8];
    for (int i = 0; i < part->rank; ++i) strides[i] = out.strides[part->rank == out.rank || i < axis ? i : i + 1];
    View place = *part;
    place.data = out.as<T>() + start * out.strides[axis];
    place.strides = strides;
    place.contiguous = false;
    move_all<T>(place, *part);
    start += part->rank == out.rank ? part->dims[axis] : 1;
  }
}

// Elements of a view that are adjacent along its first axis.
class LeadingPart {
 public:
  const View* take(const View& x, std::int64_t first, std::int64_t count) {
    view_ = x;
    std::copy_n(x.dims, x.rank, dims_);
    dims_[0] = count;
    view_.dims = dims_;
    view_.numel = x.numel / x.dims[0] * count;
    view_.data = x.as<std::byte>() + first * x.strides[0] * static_cast<std::int64_t>(size_of(x.dtype));
    return &view_;
  }

 private:
  View view_;
  std::int64_t dims_[8];
};

template <class T>
void concat_typed(const View& out, std::span<const View* const> parts, int axis) {
  std::int64_t rows = 1;
  for (int i = 0; i < axis; ++i) rows *= out.dims[i];
  // With a single row there is nothing to alternate, and for short rows alternating costs more than it gains.
  bool contiguous = rows > 1 && out.numel / rows >= 16 * static_cast<std::int64_t>(parts.size());
  for (const View* part : parts) contiguous &= part->contiguous;
  if (contiguous) return join_rows<T>(out, parts, rows);
  // In pieces that stay in a cache, since each part writes to all lines of short rows.
  std::int64_t leading = axis == 0 ? 1 : out.dims[0];
  std::int64_t piece = std::max<std::int64_t>(cached<T> / 2 * leading / out.numel, 1);
  if (piece >= leading) return join_parts<T>(out, parts, axis);
  parallel_for((leading + piece - 1) / piece, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<LeadingPart> some(parts.size());
    std::vector<const View*> views(parts.size());
    for (std::int64_t first = begin * piece, last = std::min(end * piece, leading); first < last; first += piece) {
      std::int64_t count = std::min(piece, last - first);
      for (std::size_t k = 0; k < parts.size(); ++k) views[k] = some[k].take(*parts[k], first, count);
      LeadingPart joined;
      join_parts<T>(*joined.take(out, first, count), views, axis);
    }
  });
}

void concat(const View& out, std::span<const View* const> parts, int axis) {
  if (out.numel == 0) return;
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) { concat_typed<T>(out, parts, axis); });
}

void convert_all(const View& out, const View& x) {
  run_loop(out, {&x}, block_converter(out.dtype, x.dtype), {.widens = false, .parallel_from = parallel_grain});
}

template <class T>
void fill_typed(const View& out, T value) {
  if (out.contiguous)
    return parallel_for(out.numel, move_grain<T>, [&](std::int64_t begin, std::int64_t end) {
      std::fill(out.as<T>() + begin, out.as<T>() + end, value);
    });
  Iteration<1> iteration({&out});
  for_each_row(iteration, out.numel, parallel_grain, [&](const std::int64_t* offsets, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) out.as<T>()[offsets[0] + i * iteration.strides[0][0]] = value;
  });
}

void fill(const View& out, double number, std::int64_t integer) {
  std::byte value[8];
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>)
      new (value) T(convert<T>(integer));
    else
      new (value) T(convert<T>(number));
  });
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) {
    T bits;
    std::memcpy(&bits, value, sizeof(T));
    fill_typed(out, bits);
  });
}

}  // namespace

void copy_elements(const View& out, const View& x) {
  if (out.dtype != x.dtype) return convert_all(out, x);
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) { move_all<T>(out, x); });
}

void fill_copy(KernelTable& table) {
  table.copy = copy_elements;
  table.concat = concat;
  table.fill = fill;
}

}  // namespace reel::detail::inline REEL_TARGET
