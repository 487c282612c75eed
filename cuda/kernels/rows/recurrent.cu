#include <cstdint>
#include <type_traits>
#include <vector>

#include "../../../lib/core/device/device_module.h"
#include "../../../lib/core/parameter_version.h"
#include "../../../lib/kernels/formulas/recurrent.h"
#include "../../device/launch.h"
#include "../../device/offsets.h"
#include "../../libraries/fused_layer.h"
#include "../../runtime/cuda_kernels.h"
#include "recurrent_weights.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

using formulas::Unit;

// The rows of a step: element i of (rows, size).
struct Units {
  std::int64_t rows, size;
  Divisor by_size;
  bool small;

  Units(std::int64_t rows, std::int64_t size) : rows(rows), size(size) {
    small = rows * size < (std::int64_t{1} << 31) && size > 0;
    if (small) by_size = Divisor(static_cast<std::uint32_t>(size));
  }
  REEL_DEVICE std::int64_t row(std::int64_t i) const {
    return small ? by_size.quotient(static_cast<std::uint32_t>(i)) : i / size;
  }
};

template <class Element>
REEL_HOST_DEVICE Element* offset_by(Element* first, std::int64_t offset) {
  return first ? first + offset : nullptr;
}

template <class T>
T* elements(const View& view, std::int64_t offset = 0) {
  return offset_by(view.as<T>(), offset);
}

// A cell's step on the rows of a step; missing operands are null.
template <RecurrentCell cell, class T>
struct CellStep {
  Units units;
  const T *p, *q, *bias, *before;
  T *h, *work, *c;
  T *carried_h, *carried_c;  // receive h and c, too; `before` may be one of them

  REEL_DEVICE void operator()(std::int64_t i) const {
    constexpr CellForm form = form_of(cell);
    std::int64_t size = units.size, row = units.row(i), at = row * size;
    Unit<T> unit{i - at};
    formulas::Cell<cell>::forward(formulas::CellRow<T>{.p = p + at * form.gates,
                                                       .q = q + at * form.gates,
                                                       .bias = bias,
                                                       .before = offset_by(before, at),
                                                       .h = h + at,
                                                       .work = offset_by(work, at * form.work),
                                                       .c = offset_by(c, at),
                                                       .units = size,
                                                       .size = size,
                                                       .q_stride = size},
                                  unit);
    if (carried_h) carried_h[i] = h[i];
    if (carried_c) carried_c[i] = c[i];
  }
};

// The states of rows before a step: of the first rows from the step before, of the others from the initial state.
template <class T>
struct Earlier {
  const T* since_last;
  std::int64_t rows_of_last;
  const T* since_beginning;
  REEL_DEVICE const T* of(std::int64_t row, std::int64_t size) const {
    return offset_by(row < rows_of_last ? since_last : since_beginning, row * size);
  }
};

template <RecurrentCell cell, class T>
struct CellGradientStep {
  Units units;
  const T *dh, *more_dh, *dc, *work, *after;
  Earlier<T> before, h_before;
  T *dp, *dq, *d_before;
  T* kept_h_before;  // receives h_before

  REEL_DEVICE void operator()(std::int64_t i) const {
    constexpr CellForm form = form_of(cell);
    std::int64_t size = units.size, row = units.row(i), at = row * size;
    Unit<T> unit{i - at};
    T h = kept_h_before ? unit.load(h_before.of(row, size)) : T(0);
    formulas::Cell<cell>::backward(formulas::CellGradientRow<T>{.dh = dh + at,
                                                                .more_dh = offset_by(more_dh, at),
                                                                .dc = offset_by(dc, at),
                                                                .work = offset_by(work, at * form.work),
                                                                .before = before.of(row, size),
                                                                .after = offset_by(after, at),
                                                                .dp = dp + at * form.gates,
                                                                .dq = offset_by(dq, at * form.gates),
                                                                .d_before = offset_by(d_before, at),
                                                                .units = size,
                                                                .size = size},
                                   unit);
    if (kept_h_before) kept_h_before[i] = h;
  }
};

template <RecurrentCell cell, class T>
void run_cell(const CellForward& step) {
  for_each(step.h.numel, CellStep<cell, T>{{step.h.dims[0], step.h.dims[1]},
                                           step.p.as<T>(),
                                           step.q.as<T>(),
                                           step.bias.as<T>(),
                                           step.before.as<T>(),
                                           step.h.as<T>(),
                                           step.work.as<T>(),
                                           step.c.as<T>(),
                                           nullptr,
                                           nullptr});
}

template <RecurrentCell cell, class T>
void run_cell_gradient(const CellBackward& step) {
  for_each(step.dh.numel, CellGradientStep<cell, T>{{step.dh.dims[0], step.dh.dims[1]},
                                                    step.dh.as<T>(),
                                                    nullptr,
                                                    step.dc.as<T>(),
                                                    step.work.as<T>(),
                                                    step.after.as<T>(),
                                                    {nullptr, 0, step.before.as<T>()},
                                                    {},
                                                    step.dp.as<T>(),
                                                    step.dq.as<T>(),
                                                    step.d_before.as<T>(),
                                                    nullptr});
}

template <class T>
struct TreeStep {
  Units units;
  formulas::TreeRow<T> first;
  bool p_rows;  // p has a row for each row

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t row = units.row(i), at = row * units.size, blocks = 3 + first.children;
    formulas::TreeRow<T> here = first;
    here.a += at * blocks;
    if (p_rows) here.p += at * 4;
    here.work += at * blocks;
    here.h += at;
    here.c += at;
    for (int k = 0; k < first.children; ++k) here.before[k] += at;
    here.forward(Unit<T>{i - at});
  }
};

template <class T>
void run_tree_cell(const TreeCellForward& node) {
  std::int64_t size = node.h.dims[1];
  TreeStep<T> step{{node.h.dims[0], size},
                   {.a = node.a.as<T>(),
                    .p = node.p.as<T>(),
                    .before = {},
                    .h = node.h.as<T>(),
                    .work = node.work.as<T>(),
                    .c = node.c.as<T>(),
                    .size = size,
                    .children = node.children},
                   node.p.rank == 2};
  for (int k = 0; k < node.children; ++k) step.first.before[k] = node.before[k].as<T>();
  for_each(node.h.numel, step);
}

template <class T>
struct TreeGradientStep {
  Units units;
  formulas::TreeGradientRow<T> first;

  REEL_DEVICE void operator()(std::int64_t i) const {
    std::int64_t row = units.row(i), at = row * units.size, blocks = 3 + first.children;
    formulas::TreeGradientRow<T> here = first;
    here.dh += at;
    here.dc += at;
    here.after += at;
    here.work += at * blocks;
    here.da += at * blocks;
    for (int k = 0; k < first.children; ++k) {
      here.before[k] += at;
      here.d_before[k] += at;
    }
    here.backward(Unit<T>{i - at});
  }
};

template <class T>
void run_tree_cell_gradient(const TreeCellBackward& node) {
  std::int64_t size = node.dh.dims[1];
  TreeGradientStep<T> step{{node.dh.dims[0], size},
                           {.dh = node.dh.as<T>(),
                            .dc = node.dc.as<T>(),
                            .work = node.work.as<T>(),
                            .after = node.after.as<T>(),
                            .before = {},
                            .da = node.da.as<T>(),
                            .d_before = {},
                            .size = size,
                            .children = node.children}};
  for (int k = 0; k < node.children; ++k) {
    step.first.before[k] = node.before[k].as<T>();
    step.first.d_before[k] = node.d_before[k].as<T>();
  }
  for_each(node.dh.numel, step);
}

// A matrix in memory of the device.
class Matrix {
 public:
  Matrix(void* data, DType dtype, std::int64_t rows, std::int64_t columns)
      : dims_{rows, columns}, strides_{columns, 1}, data_(data), dtype_(dtype) {}
  Matrix transposed() const {
    Matrix swapped(data_, dtype_, dims_[1], dims_[0]);
    swapped.strides_[0] = strides_[1];
    swapped.strides_[1] = strides_[0];
    return swapped;
  }
  View view() const { return {data_, dims_, strides_, dims_[0] * dims_[1], 2, dtype_, strides_[1] == 1}; }

 private:
  std::int64_t dims_[2], strides_[2];
  void* data_;
  DType dtype_;
};

const KernelTable& device_kernels() { return device_module().kernels(); }

// The offsets of the rows of each step, in the order in which steps are computed. The counts are on the CPU.
class Steps {
 public:
  struct Step {
    std::int64_t first, count;
  };
  explicit Steps(const View& counts, bool reverse) : counts_(counts.as<std::int64_t>()), reverse_(reverse) {
    firsts_.push_back(0);
    for (std::int64_t t = 0; t < counts.numel; ++t) firsts_.push_back(firsts_.back() + counts_[t]);
  }
  std::int64_t size() const { return std::ssize(firsts_) - 1; }
  Step operator[](std::int64_t s) const {
    std::int64_t t = reverse_ ? size() - 1 - s : s;
    return {firsts_[static_cast<std::size_t>(t)], counts_[t]};
  }
  // The states before a step, from a tensor of all rows and one of the initial states.
  template <class T>
  Earlier<T> before(std::int64_t s, const View& all, const View& initial, std::int64_t size) const {
    Step last = s > 0 ? (*this)[s - 1] : Step{};
    return {elements<T>(all, last.first * size), last.count, initial.as<T>()};
  }

 private:
  const std::int64_t* counts_;
  bool reverse_;
  std::vector<std::int64_t> firsts_;
};

template <class T>
void copy_all(const View& to, const View& from) {
  if (to.numel > 0) copy_on_device(to.data, from.data, static_cast<std::size_t>(to.numel) * sizeof(T));
}

template <RecurrentCell cell, class T>
void run_layer(const LayerForward& layer) {
  constexpr CellForm form = form_of(cell);
  std::int64_t batch = layer.h.dims[0], size = layer.h.dims[1], width = form.gates * size;
  DType dtype = layer.h.dtype;
  // The state of each example, updated by each of its steps.
  copy_all<T>(layer.h, layer.h_0);
  if (layer.c.data) copy_all<T>(layer.c, layer.c_0);
  if (layer.y.numel == 0) return;
  Scratch products(static_cast<std::size_t>(batch * width) * sizeof(T));
  Steps steps(layer.counts, layer.reverse);
  for (std::int64_t s = 0; s < steps.size(); ++s) {
    auto [first, count] = steps[s];
    Matrix q(products.as<T>(), dtype, count, width), h(layer.h.data, dtype, count, size);
    device_kernels().matmul(q.view(), h.view(), layer.W_h, {});
    std::int64_t at = first * size;
    for_each(count * size, CellStep<cell, T>{{count, size},
                                             elements<T>(layer.p, at * form.gates),
                                             products.as<T>(),
                                             layer.bias.as<T>(),
                                             layer.c.data ? layer.c.as<T>() : layer.h.as<T>(),
                                             elements<T>(layer.y, at),
                                             elements<T>(layer.work, at * form.work),
                                             elements<T>(layer.c_all, at),
                                             layer.h.as<T>(),
                                             layer.c.as<T>()});
  }
}

template <RecurrentCell cell, class T>
void run_layer_gradient(const LayerBackward& layer) {
  constexpr CellForm form = form_of(cell);
  constexpr bool lstm = cell == RecurrentCell::lstm;
  std::int64_t size = layer.dh_0.dims[1], width = form.gates * size;
  DType dtype = layer.dh_0.dtype;
  // The gradient of each example's state, in the end that of its initial state.
  copy_all<T>(layer.dh_0, layer.dh);
  if (layer.dc_0.data) copy_all<T>(layer.dc_0, layer.dc);
  if (layer.y.numel == 0) return;
  Steps steps(layer.counts, layer.reverse);
  const View& dq = layer.dq.data ? layer.dq : layer.dp;
  Matrix weights(layer.W_h.data, dtype, size, width);
  for (std::int64_t s = steps.size(); s-- > 0;) {
    auto [first, count] = steps[s];
    std::int64_t at = first * size;
    Earlier<T> h_before = steps.before<T>(s, layer.y, layer.h_0, size);
    Earlier<T> c_before = steps.before<T>(s, layer.c_all, layer.c_0, size);
    for_each(count * size, CellGradientStep<cell, T>{{count, size},
                                                     elements<T>(layer.dy, at),
                                                     layer.dh_0.as<T>(),
                                                     layer.dc_0.as<T>(),
                                                     elements<T>(layer.work, at * form.work),
                                                     elements<T>(lstm ? layer.c_all : layer.y, at),
                                                     lstm ? c_before : h_before,
                                                     h_before,
                                                     elements<T>(layer.dp, at * form.gates),
                                                     elements<T>(dq, at * form.gates),
                                                     lstm ? layer.dc_0.as<T>() : layer.dh_0.as<T>(),
                                                     elements<T>(layer.h_before, at)});
    Matrix arguments(elements<T>(dq, at * form.gates), dtype, count, width);
    Matrix dh(layer.dh_0.data, dtype, count, size);
    if (cell == RecurrentCell::gru)
      device_kernels().matmul_add(dh.view(), arguments.view(), weights.transposed().view(), {});
    else
      device_kernels().matmul(dh.view(), arguments.view(), weights.transposed().view(), {});
  }
}

DType dtype_of(const CellForward& views) { return views.h.dtype; }
DType dtype_of(const CellBackward& views) { return views.dp.dtype; }
DType dtype_of(const TreeCellForward& views) { return views.h.dtype; }
DType dtype_of(const TreeCellBackward& views) { return views.da.dtype; }
DType dtype_of(const LayerForward& views) { return views.y.dtype; }
DType dtype_of(const LayerBackward& views) { return views.dp.dtype; }

template <class Views, void (*narrow)(const Views&), void (*wide)(const Views&)>
void either(const Views& views) {
  dtype_of(views) == DType::f64 ? wide(views) : narrow(views);
}

template <RecurrentCell cell>
constexpr void fill(RecurrentKernels& kernels) {
  constexpr int i = static_cast<int>(cell);
  kernels.cell[i] = either<CellForward, run_cell<cell, float>, run_cell<cell, double>>;
  kernels.cell_gradient[i] = either<CellBackward, run_cell_gradient<cell, float>, run_cell_gradient<cell, double>>;
  kernels.layer[i] = either<LayerForward, run_layer<cell, float>, run_layer<cell, double>>;
  kernels.layer_gradient[i] = either<LayerBackward, run_layer_gradient<cell, float>, run_layer_gradient<cell, double>>;
}

constexpr RecurrentKernels made_kernels() {
  RecurrentKernels kernels{};
  fill<RecurrentCell::lstm>(kernels);
  fill<RecurrentCell::gru>(kernels);
  fill<RecurrentCell::rnn_tanh>(kernels);
  fill<RecurrentCell::rnn_relu>(kernels);
  kernels.tree_cell = either<TreeCellForward, run_tree_cell<float>, run_tree_cell<double>>;
  kernels.tree_cell_gradient = either<TreeCellBackward, run_tree_cell_gradient<float>, run_tree_cell_gradient<double>>;
  kernels.fused_layer_sizes = fused_layer_sizes;
  kernels.pack_weights = pack_layer_weights;
  kernels.fused_layer = run_fused_layer;
  kernels.fused_layer_gradient = run_fused_layer_gradient;
  return kernels;
}

constexpr RecurrentKernels recurrent_kernels = made_kernels();

}  // namespace

void fill_recurrent(KernelTable& table) { table.recurrent = &recurrent_kernels; }

}  // namespace reel::detail::inline REEL_TARGET
