#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../../../lib/core/dtype_dispatch.h"
#include "../../../lib/kernels/activation.h"
#include "../../device/launch.h"
#include "../../device/offsets.h"
#include "../../runtime/cuda_kernels.h"
#include "../elementwise/activation.h"
#include "exponents.h"

namespace reel::detail {
inline namespace REEL_TARGET {
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

template <class... Views>
auto rows_of(const View& out, const Views&... inputs) {
  constexpr int count = 1 + sizeof...(Views);
  const View views[] = {heads(out), heads(inputs)...};
  const View* pointers[count];
  for (int k = 0; k < count; ++k) pointers[k] = &views[k];
  return Rows<count>{
      Offsets<count>(Iteration<count>(pointers)), last_dim(out), {last_stride(out), last_stride(inputs)...}};
}

// One row of each view.
template <class T, int operand_count>
class RowAt {
 public:
  REEL_DEVICE RowAt(const Rows<operand_count>& rows, std::int64_t row) : rows_(rows) { rows.offsets.find(row, at_); }
  template <int operand, class Element>
  REEL_DEVICE Element& get(Element* first, std::int64_t i) const {
    return first[at_[operand] + i * rows_.steps[operand]];
  }

 private:
  const Rows<operand_count>& rows_;
  std::int64_t at_[operand_count];
};

template <class Wide>
struct Softmax {
  Wide largest, factor;
  REEL_DEVICE explicit Softmax(Exponents<Wide> all) : largest(all.largest), factor(1 / all.sum) {}
  REEL_DEVICE Wide operator()(Wide x) const { return std::exp(x - largest) * factor; }
  // The result for a row whose elements are all masked.
  REEL_DEVICE static Wide nothing() { return 0; }
};

template <class Wide>
struct LogSoftmax {
  Wide largest, rest;
  REEL_DEVICE explicit LogSoftmax(Exponents<Wide> all) : largest(all.largest), rest(std::log(all.sum)) {}
  REEL_DEVICE Wide operator()(Wide x) const { return x - largest - rest; }
  REEL_DEVICE static Wide nothing() { return -std::numeric_limits<Wide>::infinity(); }
};

// Masked elements are treated as −∞.
template <class T, template <class> class Op, bool masked>
struct Forward {
  Rows<masked ? 3 : 2> rows;
  T* out;
  const T* x;
  const bool* mask;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    constexpr W infinity = std::numeric_limits<W>::infinity();
    RowAt<T, masked ? 3 : 2> at(rows, group.index());
    auto given = [&](std::int64_t i) {
      if constexpr (masked)
        if (!at.template get<2>(mask, i)) return -infinity;
      return loaded(at.template get<1>(x, i));
    };
    Exponents<W> all = exponents_of_row<W>(group, rows.length, given);
    bool is_normal = all.largest > -infinity && all.largest < infinity;
    bool is_empty = masked && all.largest == -infinity;
    W otherwise = is_empty ? Op<W>::nothing() : std::numeric_limits<W>::quiet_NaN();
    Op<W> op(all);
    group.each([&](int thread) {
      for (std::int64_t i = thread; i < rows.length; i += group.size())
        at.template get<0>(out, i) = stored<T>(is_normal ? op(given(i)) : otherwise);
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

template <class T, class Op>
struct Backward {
  Rows<3> rows;
  T* out;
  const T *d, *y;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    using W = Wide<T>;
    RowAt<T, 3> at(rows, group.index());
    auto partial = group.template per_thread<W>();
    group.each([&](int thread) {
      W sum = 0;
      for (std::int64_t i = thread; i < rows.length; i += group.size())
        sum += Op::term(loaded(at.template get<1>(d, i)), loaded(at.template get<2>(y, i)));
      partial[thread] = sum;
    });
    W sum = group.reduce(partial, [](W a, W b) { return a + b; });
    group.each([&](int thread) {
      for (std::int64_t i = thread; i < rows.length; i += group.size())
        at.template get<0>(out, i) =
            stored<T>(Op::result(loaded(at.template get<1>(d, i)), loaded(at.template get<2>(y, i)), sum));
    });
  }
};

template <class Program>
void run_rows(const View& out, const Program& program) {
  if (out.numel == 0) return;
  std::int64_t length = program.rows.length;
  for_each_group(out.numel / length, threads_for_row(length), 0, program);
}

template <template <class> class Op>
void run_plain(const View& out, const View& x) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    run_rows(out, Forward<T, Op, false>{rows_of(out, x), out.as<T>(), x.as<T>(), nullptr});
  });
}

template <template <class> class Op>
void run_masked(const View& out, const View& x, const View& mask) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    run_rows(out, Forward<T, Op, true>{rows_of(out, x, mask), out.as<T>(), x.as<T>(), mask.as<bool>()});
  });
}

template <class Op>
void run_gradient(const View& out, const View& d, const View& y) {
  with_floating(out.dtype, [&]<class T>(std::type_identity<T>) {
    run_rows(out, Backward<T, Op>{rows_of(out, d, y), out.as<T>(), d.as<T>(), y.as<T>()});
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

}  // namespace REEL_TARGET
}  // namespace reel::detail
