#include "../core/dispatch.h"
#include "../core/iteration.h"
#include "instruction_set.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

struct Sum {
  template <class A>
  static A join(A a, A b) {
    return static_cast<A>(a + b);
  }
};

struct Max {
  // Never used on nothing: the op refuses that. The start is any element.
  template <class A>
  static A join(A a, A b) {
    return a > b || a != a ? a : b;
  }
};

constexpr std::int64_t lanes = 16;
constexpr std::int64_t block = 2048;

// Joins partial results in pairs, as the digits of a counter carry: the error of a sum grows with the logarithm of the
// count.
template <class Op, class A>
class Cascade {
 public:
  void push(A partial) {
    std::uint64_t carry = count_++;
    int level = 0;
    for (; carry & 1; carry >>= 1) partial = Op::join(levels_[level++], partial);
    levels_[level] = partial;
  }
  A result() const {
    A total{};
    bool first = true;
    int level = 0;
    for (std::uint64_t left = count_; left != 0; left >>= 1, ++level) {
      if (!(left & 1)) continue;
      total = first ? levels_[level] : Op::join(levels_[level], total);
      first = false;
    }
    return total;
  }

 private:
  std::uint64_t count_ = 0;
  A levels_[64];
};

template <class Op, class A, class T>
A block_result(const T* x, std::int64_t step, std::int64_t n) {
  if (n < lanes) {
    A total = static_cast<A>(x[0]);
    for (std::int64_t i = 1; i < n; ++i) total = Op::join(total, static_cast<A>(x[i * step]));
    return total;
  }
  A partial[lanes];
  for (std::int64_t j = 0; j < lanes; ++j) partial[j] = static_cast<A>(x[j * step]);
  std::int64_t i = lanes;
  if (step == 1) {
    for (; i + lanes <= n; i += lanes)
      for (std::int64_t j = 0; j < lanes; ++j) partial[j] = Op::join(partial[j], static_cast<A>(x[i + j]));
  } else {
    for (; i + lanes <= n; i += lanes)
      for (std::int64_t j = 0; j < lanes; ++j) partial[j] = Op::join(partial[j], static_cast<A>(x[(i + j) * step]));
  }
  for (std::int64_t j = 0; i < n; ++i, ++j) partial[j] = Op::join(partial[j], static_cast<A>(x[i * step]));
  for (std::int64_t width = lanes / 2; width > 0; width /= 2)
    for (std::int64_t j = 0; j < width; ++j) partial[j] = Op::join(partial[j], partial[j + width]);
  return partial[0];
}

// The axes that stay and the axes that go, each as a view of its own over x.
struct Axes {
  std::int64_t dims[8], strides[8];
  int rank = 0;
  void add(std::int64_t dim, std::int64_t stride) {
    dims[rank] = dim;
    strides[rank++] = stride;
  }
  View view() const {
    View view;
    view.dims = dims;
    view.strides = strides;
    view.rank = rank;
    return view;
  }
};

template <class Op, class A, class R, class T>
void reduce_rows(R* out, const T* x, const Iteration<1>& kept, const Iteration<1>& gone) {
  kept.for_each_row([&](const std::int64_t* offset) {
    for (std::int64_t k = 0; k < kept.dims[0]; ++k) {
      const T* from = x + offset[0] + k * kept.strides[0][0];
      Cascade<Op, A> cascade;
      gone.for_each_row([&](const std::int64_t* inner) {
        for (std::int64_t i = 0; i < gone.dims[0]; i += block) {
          std::int64_t count = gone.dims[0] - i < block ? gone.dims[0] - i : block;
          cascade.push(block_result<Op, A>(from + inner[0] + i * gone.strides[0][0], gone.strides[0][0], count));
        }
      });
      *out++ = static_cast<R>(cascade.result());
    }
  });
}

// Where the elements of one result lie far apart, a tile of neighbouring results is kept in hand.
template <class Op, class A, class R, class T>
void reduce_columns(R* out, const T* x, const Iteration<1>& kept, const Iteration<1>& gone) {
  constexpr std::int64_t tile = 128, rows_per_part = 64;
  constexpr int max_levels = 40;  // of 64 · 2⁴⁰ rows
  kept.for_each_row([&](const std::int64_t* offset) {
    for (std::int64_t k = 0; k < kept.dims[0]; k += tile) {
      std::int64_t width = kept.dims[0] - k < tile ? kept.dims[0] - k : tile;
      const T* from = x + offset[0] + k;
      // A counter's digits, as in Cascade, but of whole tiles.
      A part[tile], levels[max_levels][tile];
      std::int64_t rows = 0, parts = 0;
      auto flush = [&] {
        if (rows == 0) return;
        int level = 0;
        for (std::int64_t carry = parts++; carry & 1; carry >>= 1, ++level)
          for (std::int64_t j = 0; j < width; ++j) part[j] = Op::join(levels[level][j], part[j]);
        for (std::int64_t j = 0; j < width; ++j) levels[level][j] = part[j];
        rows = 0;
      };
      gone.for_each_row([&](const std::int64_t* inner) {
        for (std::int64_t i = 0; i < gone.dims[0]; ++i) {
          const T* row = from + inner[0] + i * gone.strides[0][0];
          if (rows++ == 0)
            for (std::int64_t j = 0; j < width; ++j) part[j] = static_cast<A>(row[j]);
          else
            for (std::int64_t j = 0; j < width; ++j) part[j] = Op::join(part[j], static_cast<A>(row[j]));
          if (rows == rows_per_part) flush();
        }
      });
      flush();
      bool first = true;
      for (int level = 0; parts >> level != 0; ++level) {
        if (!(parts >> level & 1)) continue;
        for (std::int64_t j = 0; j < width; ++j)
          part[j] = first ? levels[level][j] : Op::join(levels[level][j], part[j]);
        first = false;
      }
      for (std::int64_t j = 0; j < width; ++j) out[j] = static_cast<R>(part[j]);
      out += width;
    }
  });
}

template <class Op, class A, class R, class T>
void reduce_typed(const View& out, const View& x) {
  if (out.numel == 0) return;
  if (x.numel == 0) {  // only sums get here
    for (std::int64_t i = 0; i < out.numel; ++i) out.as<R>()[i] = R(A(0));
    return;
  }
  Axes stay, go;
  for (int axis = 0; axis < x.rank; ++axis) {
    bool reduced = out.dims[axis] == 1 && x.dims[axis] != 1;
    (reduced ? go : stay).add(x.dims[axis], x.strides[axis]);
  }
  View stay_view = stay.view(), go_view = go.view();
  Iteration<1> kept({&stay_view}), gone({&go_view});
  if (kept.strides[0][0] == 1 && kept.dims[0] >= 8 && gone.strides[0][0] != 1)
    reduce_columns<Op, A>(out.as<R>(), x.as<T>(), kept, gone);
  else
    reduce_rows<Op, A>(out.as<R>(), x.as<T>(), kept, gone);
}

template <class Op>
void floating_reduce(const View& out, const View& x) {
  with_floating(x.dtype, [&]<class T>(std::type_identity<T>) {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    reduce_typed<Op, Wide, T, T>(out, x);
  });
}

// Integers are summed as unsigned, so that overflow wraps around.
void sum(const View& out, const View& x) {
  switch (x.dtype) {
    case DType::i32: return reduce_typed<Sum, std::uint64_t, std::int64_t, std::int32_t>(out, x);
    case DType::i64: return reduce_typed<Sum, std::uint64_t, std::int64_t, std::int64_t>(out, x);
    case DType::u8: return reduce_typed<Sum, std::uint64_t, std::int64_t, std::uint8_t>(out, x);
    case DType::boolean: return reduce_typed<Sum, std::uint64_t, std::int64_t, bool>(out, x);
    default: return floating_reduce<Sum>(out, x);
  }
}

void max(const View& out, const View& x) {
  switch (x.dtype) {
    case DType::i32: return reduce_typed<Max, std::int32_t, std::int32_t, std::int32_t>(out, x);
    case DType::i64: return reduce_typed<Max, std::int64_t, std::int64_t, std::int64_t>(out, x);
    case DType::u8: return reduce_typed<Max, std::uint8_t, std::uint8_t, std::uint8_t>(out, x);
    case DType::boolean: return reduce_typed<Max, std::uint8_t, bool, bool>(out, x);
    default: return floating_reduce<Max>(out, x);
  }
}

}  // namespace

void fill_reduce(KernelTable& table) {
  table.reduce[static_cast<int>(Reduction::sum)] = sum;
  table.reduce[static_cast<int>(Reduction::max)] = max;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
