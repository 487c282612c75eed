#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../../lib/kernels/activation.h"
#include "../../device/launch.h"
#include "../../device/offsets.h"
#include "../../device/packed_row.h"
#include "../../runtime/cuda_kernels.h"
#include "../elementwise/elementwise.h"
#include "aligned_view.h"
#include "exponents.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// x without its last axis.
View heads(const View& x) {
  View view = x;
  if (view.rank > 0) --view.rank;
  return view;
}
std::int64_t last_dim(const View& x) { return x.rank == 0 ? 1 : x.dims[x.rank - 1]; }
std::int64_t last_stride(const View& x) { return x.rank == 0 || x.dims[x.rank - 1] == 1 ? 0 : x.strides[x.rank - 1]; }

// The offsets of the rows of several views, and the strides of their elements.
template <int operand_count>
struct Rows {
  Offsets<operand_count> offsets;
  std::int64_t length, steps[operand_count];
};

template <int operand_count>
Iteration<operand_count> row_iteration(const View* const (&views)[operand_count]) {
  View rows[operand_count];
  const View* pointers[operand_count];
  for (int k = 0; k < operand_count; ++k) {
    rows[k] = heads(*views[k]);
    pointers[k] = &rows[k];
  }
  return Iteration<operand_count>(pointers);
}

template <int operand_count>
Rows<operand_count> rows_of(const View* const (&views)[operand_count]) {
  Rows<operand_count> rows{Offsets<operand_count>(row_iteration(views)), last_dim(*views[0]), {}};
  for (int k = 0; k < operand_count; ++k) rows.steps[k] = last_stride(*views[k]);
  return rows;
}

// True if the rows of all views, that of the first of T, can be read by packs of 16 bytes of T, wherever the first begins.
template <class T, int operand_count>
bool has_packs(const View* const (&views)[operand_count]) {
  if (!has_full_packs<T>(last_dim(*views[0]))) return false;
  Iteration<operand_count> iteration = row_iteration(views);
  for (int k = 0; k < operand_count; ++k) {
    if (last_stride(*views[k]) != 1) return false;
    for (int axis = 0; axis < iteration.rank; ++axis)
      if (iteration.dims[axis] > 1 && iteration.strides[k][axis] % full_lanes<T> != 0) return false;
  }
  return true;
}

// One row of each view, in packs: packs of one element may be apart.
template <int lanes, int operand_count>
class RowAt {
 public:
  REEL_DEVICE RowAt(const Rows<operand_count>& rows, std::int64_t row) : rows_(rows) { rows.offsets.find(row, at_); }
  template <int operand, class Element>
  REEL_DEVICE Pack<Element, lanes> get(const Element* first, std::int64_t p) const {
    return load_pack<lanes>(first + offset(operand, p), 0);
  }
  template <int operand, class Element>
  REEL_DEVICE void put(Element* first, std::int64_t p, const Pack<Element, lanes>& pack) const {
    store_pack<lanes>(first + offset(operand, p), 0, pack);
  }

 private:
  REEL_DEVICE std::int64_t offset(int operand, std::int64_t p) const {
    return at_[operand] + p * (lanes == 1 ? rows_.steps[operand] : lanes);
  }

  const Rows<operand_count>& rows_;
  std::int64_t at_[operand_count];
};

// The results of rows whose elements are all masked are 0, or −∞; those of other rows without a finite largest element are
// NaN. Both follow from the numbers of a row, so that no element needs a branch.
template <class Wide>
struct RowNumbers {
  static constexpr Wide infinity = std::numeric_limits<Wide>::infinity();
  bool is_normal, is_empty;
  Wide largest;
  REEL_DEVICE RowNumbers(Exponents<Wide> all, bool masked)
      : is_normal(all.largest > -infinity && all.largest < infinity),
        is_empty(masked && all.largest == -infinity),
        largest(is_normal ? all.largest : Wide(0)) {}
  REEL_DEVICE Wide choose(Wide normal, Wide empty) const {
    return is_normal ? normal : is_empty ? empty : std::numeric_limits<Wide>::quiet_NaN();
  }
};

template <class Wide>
struct Softmax {
  Wide largest, factor;
  REEL_DEVICE Softmax(Exponents<Wide> all, bool masked) {
    RowNumbers<Wide> row(all, masked);
    largest = row.largest;
    factor = row.choose(1 / all.sum, 0);
  }
  REEL_DEVICE Wide operator()(Wide x) const { return std::exp(x - largest) * factor; }
};

template <class Wide>
struct LogSoftmax {
  Wide largest, rest;
  REEL_DEVICE LogSoftmax(Exponents<Wide> all, bool masked) {
    RowNumbers<Wide> row(all, masked);
    largest = row.largest;
    rest = row.choose(std::log(all.sum), std::numeric_limits<Wide>::infinity());
  }
  REEL_DEVICE Wide operator()(Wide x) const { return x - largest - rest; }
};

template <class T>
REEL_DEVICE T minus_infinity() {
  return stored<T>(-std::numeric_limits<Wide<T>>::infinity());
}

// Masked elements are treated as −∞. Bound: x and the mask are read once and y is written once, if the row is one chunk;
// else x and the mask are read twice.
template <class T, template <class> class Op, int lanes>
struct Forward {
  static constexpr int lanes_of_pack = lanes;
  Rows<3> rows;
  T* out;
  const T* x;
  const bool* mask;  // may be null

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    RowAt<lanes, 3> at(rows, group.index());
    PackLoop<lanes> loop(0, rows.length / lanes, group.size());
    auto kept = group.template per_thread<KeptPacks<T, lanes>>();
    auto given = [&](std::int64_t p) {
      Pack<T, lanes> pack = at.template get<1>(x, p);
      if (!mask) return pack;
      Pack<bool, lanes> is_seen = at.template get<2>(mask, p);
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        if (!is_seen.element[lane]) pack.element[lane] = minus_infinity<T>();
      return pack;
    };
    Exponents<W> all = exponents_of_row<lanes, T>(group, loop, kept, given);
    Op<W> op(all, mask != nullptr);
    group.each([&](int thread) {
      KeptPacks<T, lanes>& own = kept[thread];
      loop.run(
          1, thread, [&](int k, std::int64_t p) { own.of[k] = given(p); },
          [&](int k, std::int64_t p) {
            Pack<T, lanes> result;
#pragma unroll
            for (int lane = 0; lane < lanes; ++lane)
              result.element[lane] = stored<T>(op(loaded(own.of[k].element[lane])));
            at.template put<0>(out, p, result);
          });
    });
  }
};

// dx = y (d − Σ d y)
struct SoftmaxGradient {
  template <class Wide>
  REEL_DEVICE static Wide term(Wide d, Wide y) {
    return d * y;
  }
  template <class Wide>
  REEL_DEVICE static Wide result(Wide d, Wide y, Wide sum) {
    return y * (d - sum);
  }
};

// dx = d − e^y Σ d
struct LogSoftmaxGradient {
  template <class Wide>
  REEL_DEVICE static Wide term(Wide d, Wide) {
    return d;
  }
  template <class Wide>
  REEL_DEVICE static Wide result(Wide d, Wide y, Wide sum) {
    return d - std::exp(y) * sum;
  }
};

// Bound: d and y are read once and dx is written once, if the row is one chunk; else d and y are read twice.
template <class T, class Op, int lanes>
struct Backward {
  static constexpr int lanes_of_pack = lanes;
  Rows<3> rows;
  T* out;
  const T *d, *y;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    RowAt<lanes, 3> at(rows, group.index());
    PackLoop<lanes> loop(0, rows.length / lanes, group.size());
    auto of_d = group.template per_thread<KeptPacks<T, lanes>>(),
         of_y = group.template per_thread<KeptPacks<T, lanes>>();
    auto load = [&](int thread) {
      return [&, thread](int k, std::int64_t p) {
        of_d[thread].of[k] = at.template get<1>(d, p);
        of_y[thread].of[k] = at.template get<2>(y, p);
      };
    };
    auto partial = group.template per_thread<W>();
    group.each([&](int thread) {
      W sum = 0;
      loop.run(0, thread, load(thread), [&](int k, std::int64_t) {
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane)
          sum += Op::term(loaded(of_d[thread].of[k].element[lane]), loaded(of_y[thread].of[k].element[lane]));
      });
      partial[thread] = sum;
    });
    W sum = group.reduce(partial, [](W a, W b) { return a + b; });
    group.each([&](int thread) {
      loop.run(1, thread, load(thread), [&](int k, std::int64_t p) {
        Pack<T, lanes> result;
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane)
          result.element[lane] = stored<T>(
              Op::result(loaded(of_d[thread].of[k].element[lane]), loaded(of_y[thread].of[k].element[lane]), sum));
        at.template put<0>(out, p, result);
      });
    });
  }
};

template <class Program>
void run_rows(const View& out, const Program& program) {
  constexpr int lanes = Program::lanes_of_pack;
  std::int64_t length = program.rows.length;
  for_each_group(out.numel / length, threads_for_packs(length / lanes, lanes), 0, program);
}

template <class T, template <class> class Op, int lanes>
void run_forward(const View& out, const View& x, const View* mask) {
  run_rows(out, Forward<T, Op, lanes>{rows_of({&out, &x, mask ? mask : &x}), out.as<T>(), x.as<T>(),
                                      mask ? mask->as<bool>() : nullptr});
}

template <template <class> class Op>
void run(const View& out, const View& x, const View* mask) {
  if (out.numel == 0) return;
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    if (!has_packs<T>({&out, &x, mask ? mask : &x})) return run_forward<T, Op, 1>(out, x, mask);
    constexpr int lanes = full_lanes<T>;
    AlignedResult to(out, lanes);
    AlignedView from(x, lanes);
    std::optional<AlignedView> seen;
    if (mask) seen.emplace(*mask, lanes);
    run_forward<T, Op, lanes>(to.view(), from.view(), seen ? &seen->view() : nullptr);
    to.finish();
  });
}

template <template <class> class Op>
void run_plain(const View& out, const View& x) {
  run<Op>(out, x, nullptr);
}

template <template <class> class Op>
void run_masked(const View& out, const View& x, const View& mask) {
  run<Op>(out, x, &mask);
}

template <class T, class Op, int lanes>
void run_backward(const View& out, const View& d, const View& y) {
  run_rows(out, Backward<T, Op, lanes>{rows_of({&out, &d, &y}), out.as<T>(), d.as<T>(), y.as<T>()});
}

template <class Op>
void run_gradient(const View& out, const View& d, const View& y) {
  if (out.numel == 0) return;
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    if (!has_packs<T>({&out, &d, &y})) return run_backward<T, Op, 1>(out, d, y);
    constexpr int lanes = full_lanes<T>;
    AlignedResult to(out, lanes);
    AlignedView of_d(d, lanes), of_y(y, lanes);
    run_backward<T, Op, lanes>(to.view(), of_d.view(), of_y.view());
    to.finish();
  });
}

}  // namespace

void fill_masked_softmax(ActivationKernels& table) {
  table.masked_softmax = run_masked<Softmax>;
  table.masked_log_softmax = run_masked<LogSoftmax>;
}

void fill_softmax(KernelTable& table) {
  table.softmax = run_plain<Softmax>;
  table.log_softmax = run_plain<LogSoftmax>;
  table.softmax_gradient = run_gradient<SoftmaxGradient>;
  table.log_softmax_gradient = run_gradient<LogSoftmaxGradient>;
}

}  // namespace reel::detail::inline REEL_TARGET
