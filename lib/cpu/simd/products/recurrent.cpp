#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../../../core/threads/parallel.h"
#include "../instruction_set.h"
#include "../vector/fetch.h"
#include "recurrent_cell.h"
#include "step_product.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

template <class T>
T* elements(const View& view, std::int64_t offset = 0) {
  return view.data ? view.as<T>() + offset : nullptr;
}

// The number of units of a cell, which take some 2 ns each, from which a second thread pays.
constexpr std::int64_t cell_grain = 1 << 13;

template <class Body>
void for_rows(const View& h, Body body) {
  std::int64_t rows = h.dims[0], size = h.dims[1];
  if (h.numel == 0) return;
  parallel_for(rows, std::max<std::int64_t>(cell_grain / size, 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row);
  });
}

template <RecurrentCell cell, class T>
void run_cell(const CellForward& step) {
  constexpr CellForm form = form_of(cell);
  std::int64_t size = step.h.dims[1];
  for_rows(step.h, [&](std::int64_t row) {
    std::int64_t at = row * size;
    run_forward<cell, T>({.p = elements<T>(step.p, at * form.gates),
                          .q = elements<T>(step.q, at * form.gates),
                          .bias = elements<T>(step.bias),
                          .before = elements<T>(step.before, at),
                          .h = elements<T>(step.h, at),
                          .work = elements<T>(step.work, at * form.work),
                          .c = elements<T>(step.c, at),
                          .units = size,
                          .size = size,
                          .q_stride = size});
  });
}

template <RecurrentCell cell, class T>
void run_cell_gradient(const CellBackward& step) {
  constexpr CellForm form = form_of(cell);
  std::int64_t size = step.dh.dims[1];
  for_rows(step.dh, [&](std::int64_t row) {
    std::int64_t at = row * size;
    run_backward<cell, T>({.dh = elements<T>(step.dh, at),
                           .more_dh = nullptr,
                           .dc = elements<T>(step.dc, at),
                           .work = elements<T>(step.work, at * form.work),
                           .before = elements<T>(step.before, at),
                           .after = elements<T>(step.after, at),
                           .dp = elements<T>(step.dp, at * form.gates),
                           .dq = elements<T>(step.dq, at * form.gates),
                           .d_before = elements<T>(step.d_before, at),
                           .units = size,
                           .size = size});
  });
}

template <class T>
void run_tree_cell(const TreeCellForward& node) {
  std::int64_t size = node.h.dims[1], blocks = 3 + node.children;
  for_rows(node.h, [&](std::int64_t row) {
    std::int64_t at = row * size;
    TreeRow<T> here{.a = elements<T>(node.a, at * blocks),
                    .p = elements<T>(node.p, node.p.rank == 2 ? at * 4 : 0),
                    .before = {},
                    .h = elements<T>(node.h, at),
                    .work = elements<T>(node.work, at * blocks),
                    .c = elements<T>(node.c, at),
                    .size = size,
                    .children = node.children};
    for (int k = 0; k < node.children; ++k) here.before[k] = elements<T>(node.before[k], at);
    run_forward(here);
  });
}

template <class T>
void run_tree_cell_gradient(const TreeCellBackward& node) {
  std::int64_t size = node.dh.dims[1], blocks = 3 + node.children;
  for_rows(node.dh, [&](std::int64_t row) {
    std::int64_t at = row * size;
    TreeGradientRow<T> here{.dh = elements<T>(node.dh, at),
                            .dc = elements<T>(node.dc, at),
                            .work = elements<T>(node.work, at * blocks),
                            .after = elements<T>(node.after, at),
                            .before = {},
                            .da = elements<T>(node.da, at * blocks),
                            .d_before = {},
                            .size = size,
                            .children = node.children};
    for (int k = 0; k < node.children; ++k) {
      here.before[k] = elements<T>(node.before[k], at);
      here.d_before[k] = elements<T>(node.d_before[k], at);
    }
    run_backward(here);
  });
}

// The rows of each step, and the steps in the order in which they are computed.
struct Steps {
  struct Step {
    std::int64_t first, count;  // rows
  };
  std::vector<Step> steps;

  Steps(const View& counts, bool reverse) {
    std::int64_t first = 0;
    for (std::int64_t t = 0; t < counts.numel; ++t) {
      steps.push_back({first, counts.as<std::int64_t>()[t]});
      first += steps.back().count;
    }
    if (reverse) std::reverse(steps.begin(), steps.end());
  }

  // The index of the row of the same example in the step before; −1 if the example has no such step.
  std::int64_t before(std::size_t step, std::int64_t row) const {
    return step > 0 && row < steps[step - 1].count ? steps[step - 1].first + row : -1;
  }
};

// Waking a second thread costs as much as 2²⁴ multiplications, see matmul.cpp, and each thread gets at least a quarter of
// that.
constexpr std::int64_t parallel_cost = 1 << 24, part_cost = parallel_cost / 4;

// Calls body(begin, units) for groups of units. A group's results depend on no other group's.
template <class T, class Body>
void for_groups(const PackedWeights<T>& weights, std::int64_t rows, Body body) {
  std::int64_t width = weights.group(), columns = weights.columns(), groups = (columns + width - 1) / width;
  std::int64_t cost = std::max<std::int64_t>(rows * width * weights.blocks() * weights.depth(), 1);
  std::int64_t grain = cost * groups < parallel_cost ? groups : std::max<std::int64_t>(part_cost / cost, 1);
  parallel_for(groups, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group)
      body(group * width, std::min(width, columns - group * width));
  });
}

template <class T>
void copy_all(const View& to, const View& from) {
  if (to.numel > 0) std::memcpy(to.data, from.data, static_cast<std::size_t>(to.numel) * sizeof(T));
}

// Prefetches some units of all blocks of a row, while the product that the cell waits for is computed: in a layer's
// large tensors each block is in a page of its own. LSTM T=50, B=32, H=512, forward and backward, one thread, relative
// to libtorch's time: 0.63 without, 0.56 with.
template <class T>
void fetch_units(const View& view, std::int64_t offset, std::int64_t units, std::int64_t blocks, std::int64_t size) {
  if (!view.data) return;
  for (std::int64_t block = 0; block < blocks; ++block) fetch(view.as<T>() + offset + block * size, units);
}

template <class T>
T* product_scratch(std::int64_t count) {
  static constinit ThreadScratch scratch;
  return scratch.get<T>(count);
}

template <class T>
Matrix<T> matrix_of(const View& view) {
  return {view.as<T>(), view.dims[0], view.dims[1], view.dims[1], 1};
}

// oneDNN's layer is somewhat faster where it is applicable (f32, all examples of one length, a shape that was used
// before): see "Recurrent layers" in tools/benchmark/README.md. But a ragged batch has some 200 row counts, for each of
// which it would generate a kernel, or be padded to twice its steps; and it has no f64.
template <RecurrentCell cell, class T>
void run_layer(const LayerForward& layer) {
  constexpr CellForm form = form_of(cell);
  std::int64_t batch = layer.h.dims[0], size = layer.h.dims[1];
  // The state of each example, updated by each of its steps.
  copy_all<T>(layer.h, layer.h_0);
  if (layer.c.data) copy_all<T>(layer.c, layer.c_0);
  if (layer.y.numel == 0) return;
  Steps plan(layer.counts, layer.reverse);
  PackedWeights<T> weights(matrix_of<T>(layer.W_h), form.gates, batch, layer.weight_dtype);
  std::int64_t width = weights.group(), products_of_row = form.gates * width;
  PackedRows<T> packed[2] = {{batch, size}, {batch, size}};
  for (PackedRows<T>& rows : packed)
    for (std::int64_t row = 0; row < batch; ++row) rows.put(row, 0, elements<T>(layer.h_0, row * size), size);

  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    auto [first, count] = plan.steps[s];
    const PackedRows<T>& now = packed[s % 2];
    PackedRows<T>& next = packed[(s + 1) % 2];
    for_groups(weights, count, [&, first = first, count = count](std::int64_t begin, std::int64_t units) {
      T* products = product_scratch<T>(count * products_of_row);
      for (std::int64_t row = 0; row < count; ++row) {
        std::int64_t at = (first + row) * size + begin;
        fetch_units<T>(layer.p, (first + row) * size * form.gates + begin, units, form.gates, size);
        fetch_units<T>(layer.y, at, units, 1, size);
        fetch_units<T>(layer.c_all, at, units, 1, size);
      }
      weights.multiply(products, now, count, begin);
      for (std::int64_t row = 0; row < count; ++row) {
        std::int64_t at = (first + row) * size, state = row * size + begin;
        T* h = elements<T>(layer.y, at + begin);
        run_forward<cell, T>({.p = elements<T>(layer.p, at * form.gates + begin),
                              .q = products + row * products_of_row,
                              .bias = elements<T>(layer.bias, begin),
                              .before = elements<T>(layer.c.data ? layer.c : layer.h, state),
                              .h = h,
                              .work = elements<T>(layer.work, at * form.work + begin),
                              .c = elements<T>(layer.c_all, at + begin),
                              .units = units,
                              .size = size,
                              .q_stride = width});
        std::copy_n(h, units, elements<T>(layer.h, state));
        if (layer.c.data) std::copy_n(elements<T>(layer.c_all, at + begin), units, elements<T>(layer.c, state));
        next.put(row, begin, h, units);
      }
    });
  }
}

template <RecurrentCell cell, class T>
void run_layer_gradient(const LayerBackward& layer) {
  constexpr CellForm form = form_of(cell);
  std::int64_t batch = layer.dh_0.dims[0], size = layer.dh_0.dims[1];
  // The gradient of each example's state, in the end that of its initial state.
  copy_all<T>(layer.dh_0, layer.dh);
  if (layer.dc_0.data) copy_all<T>(layer.dc_0, layer.dc);
  if (layer.y.numel == 0) return;
  Steps plan(layer.counts, layer.reverse);
  PackedWeights<T> weights(matrix_of<T>(layer.W_h).transposed(), 1, batch, layer.weight_dtype);
  std::int64_t width = weights.group();
  PackedRows<T> packed[2] = {{batch, form.gates * size}, {batch, form.gates * size}};
  const View& dq = layer.dq.data ? layer.dq : layer.dp;
  std::int64_t last_count = 0;  // of the step processed before, which is later in time

  auto take_product = [&](std::size_t s, std::int64_t begin, std::int64_t units) {
    T* product = product_scratch<T>(last_count * width);
    weights.multiply(product, packed[s % 2], last_count, begin);
    for (std::int64_t row = 0; row < last_count; ++row) {
      T *dh = elements<T>(layer.dh_0, row * size + begin), *from = product + row * width;
      for (std::int64_t j = 0; j < units; ++j) dh[j] = cell == RecurrentCell::gru ? dh[j] + from[j] : from[j];
    }
  };

  for (std::size_t s = plan.steps.size(); s-- > 0;) {
    auto [first, count] = plan.steps[s];
    for_groups(weights, last_count, [&, first = first, count = count](std::int64_t begin, std::int64_t units) {
      for (std::int64_t row = 0; row < count; ++row) {
        std::int64_t at = (first + row) * size, before = plan.before(s, row);
        fetch_units<T>(layer.work, at * form.work + begin, units, form.work, size);
        fetch_units<T>(layer.dp, at * form.gates + begin, units, form.gates, size);
        fetch_units<T>(layer.dy, at + begin, units, 1, size);
        fetch_units<T>(layer.h_before, at + begin, units, 1, size);
        if (before >= 0) fetch_units<T>(layer.y, before * size + begin, units, 1, size);
        if (before >= 0) fetch_units<T>(layer.c_all, before * size + begin, units, 1, size);
      }
      take_product(s + 1, begin, units);
      for (std::int64_t row = 0; row < count; ++row) {
        std::int64_t at = (first + row) * size, state = row * size + begin, before = plan.before(s, row);
        const T* h_before = before < 0 ? elements<T>(layer.h_0, state) : elements<T>(layer.y, before * size + begin);
        const T* c_before =
            before < 0 ? elements<T>(layer.c_0, state) : elements<T>(layer.c_all, before * size + begin);
        T* dh = elements<T>(layer.dh_0, state);
        run_backward<cell, T>({.dh = elements<T>(layer.dy, at + begin),
                               .more_dh = dh,
                               .dc = elements<T>(layer.dc_0, state),
                               .work = elements<T>(layer.work, at * form.work + begin),
                               .before = cell == RecurrentCell::lstm ? c_before : h_before,
                               .after = elements<T>(cell == RecurrentCell::lstm ? layer.c_all : layer.y, at + begin),
                               .dp = elements<T>(layer.dp, at * form.gates + begin),
                               .dq = elements<T>(dq, at * form.gates + begin),
                               .d_before = cell == RecurrentCell::lstm ? elements<T>(layer.dc_0, state) : dh,
                               .units = units,
                               .size = size});
        std::copy_n(h_before, units, elements<T>(layer.h_before, at + begin));
        for (int gate = 0; gate < form.gates; ++gate)
          packed[s % 2].put(row, gate * size + begin, elements<T>(dq, (at * form.gates) + gate * size + begin), units);
      }
    });
    last_count = count;
  }
  for_groups(weights, last_count, [&](std::int64_t begin, std::int64_t units) { take_product(0, begin, units); });
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
  return kernels;
}

constexpr RecurrentKernels recurrent_kernels = made_kernels();

}  // namespace

void fill_recurrent(KernelTable& table) { table.recurrent = &recurrent_kernels; }

}  // namespace reel::detail::inline REEL_TARGET
