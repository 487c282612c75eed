#pragma once

#include "kernel_table.h"

namespace reel::detail {

/// The equations are in reel/ops/recurrent.h.
enum class RecurrentCell : std::uint8_t { lstm, gru, rnn_tanh, rnn_relu, count };

/// The number of blocks of H columns of a cell's gate arguments, its bias, and the values saved for its gradient.
struct CellForm {
  int gates, bias, work;
};
constexpr CellForm form_of(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::lstm: return {4, 4, 4};
    case RecurrentCell::gru: return {3, 4, 4};
    default: return {1, 1, 0};
  }
}

// All views are contiguous, of one dtype, f32 or f64, except counts; operands that a cell lacks are empty. H: hidden
// size; G: gates.

/// One step of N rows. work: (N, 4 H), i f g o of lstm, r z n m of gru.
struct CellForward {
  View h, work, c;          // (N, H) but for work; c of lstm
  View p, q, before, bias;  // (N, G H), (N, G H); before (N, H) is c of lstm, h of gru; a missing bias is treated as 0
};
struct CellBackward {
  View dp, dq, d_before;             // dq is for gru; for other cells it equals dp
  View dh, dc, work, before, after;  // after is the new c of lstm, the new h of rnn
};

/// A layer over packed time steps: step t has counts[t] rows, no more than the step before, and they follow the rows of
/// earlier steps. Row r of every step belongs to one example.
struct LayerForward {
  View y, h, work, c_all, c;    // (N, H), (B, H) after the last step of each, (N, 4 H), (N, H), (B, H)
  View p, W_h, bias, h_0, c_0;  // p (N, G H) may be work
  View counts;                  // i64 (T)
  bool reverse;
  DType weight_dtype;  // bf16 or f16: W_h is rounded to it, on the CPU only; f32: not rounded
};
struct LayerBackward {
  View dp, dq, dh_0, dc_0, h_before;  // h_before (N, H): h before each row's step
  View dy, dh, dc, y, work, c_all, W_h, h_0, c_0, counts;
  bool reverse;
  DType weight_dtype;  // as in LayerForward
};

/// A layer that a device computes as one fused op, x W_x included. I: width of x.
struct FusedLayer {
  RecurrentCell cell;
  bool reverse;
  bool differentiable;
  DType dtype;
  std::int64_t width, size, batch;  // I, H, B
  View counts;
};
/// The offsets, in elements, of W_xᵀ (G H, I), W_hᵀ (G H, H), and the biases of x W_x and of h W_h (G H), among the
/// packed weights of a layer. gru's second bias holds b_m, which is added within the reset gate's product with q.
struct WeightLayout {
  std::int64_t input_weights, state_weights, input_bias, state_bias;
  bool operator==(const WeightLayout&) const = default;
};
/// The sizes in bytes of what a layer that is computed as one fused op needs in memory.
struct FusedLayerSizes {
  std::int64_t weights;  ///< its packed weights
  std::int64_t kept;     ///< what its gradient needs besides
  WeightLayout layout;
};
/// The weights of a layer; `packed` is u8.
struct LayerWeights {
  RecurrentCell cell;
  WeightLayout layout;
  View packed, W_x, W_h, bias;  // W_x and W_h may be strided
};
struct FusedLayerForward {
  FusedLayer form;
  View y, h, c, kept;        // kept: u8, for the gradient
  View x, packed, h_0, c_0;  // x (N, I)
};
/// The gradients of the weights are either all given or all empty.
struct FusedLayerBackward {
  FusedLayer form;
  View dx, dW_x, dW_h, dbias, dh_0, dc_0;
  View dy, dh, dc, x, y, h_0, c_0, kept, packed;
  bool overwrites_kept;  ///< nothing reads `kept` afterwards
};

/// The largest number of children that the kernels of a tree's node support.
constexpr int most_children = 6;

/// A node of N rows with `children` children. work: (N, (3 + children) H), i o u and f of each child.
struct TreeCellForward {
  View h, work, c;  // (N, H) but for work
  View a;           // shape as work, which it may be
  View p;           // added to a: (4 H) or (N, 4 H), i o u and f of every child; empty for none
  View before[most_children];
  int children;
};
struct TreeCellBackward {
  View da, d_before[most_children];
  View dh, dc, work, after, before[most_children];  // after is the new c
  int children;
};

struct RecurrentKernels {
  template <class Views>
  using ByCell = void (*[static_cast<int>(RecurrentCell::count)])(const Views& views);
  ByCell<CellForward> cell;
  ByCell<CellBackward> cell_gradient;
  ByCell<LayerForward> layer;
  ByCell<LayerBackward> layer_gradient;
  /// Returns false if the layer is to be computed step by step. Null if the device computes no fused layer.
  bool (*fused_layer_sizes)(const FusedLayer& form, FusedLayerSizes& sizes);
  /// Packs the weights of a fused layer.
  void (*pack_weights)(const LayerWeights& weights);
  void (*fused_layer)(const FusedLayerForward& layer);
  void (*fused_layer_gradient)(const FusedLayerBackward& layer);
  void (*tree_cell)(const TreeCellForward& node);
  void (*tree_cell_gradient)(const TreeCellBackward& node);
};

}  // namespace reel::detail
