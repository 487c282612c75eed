#pragma once

#include <optional>

#include <reel/nn/module.h>
#include <reel/nn/recurrent/options.h>
#include <reel/ops/recurrent.h>

namespace reel::nn {

/// One step of a gated recurrent unit: `gru_cell`, whose equations are in ops/recurrent.h, with parameters. x: (B, I),
/// h: (B, H). All parameters are initialised uniformly on ±1/√H.
/// Source: the initial values are those of PyTorch's GRUCell, which has two biases for each gate.
struct GRUCell : Module {
  Parameter W_x;                      ///< (I, 3H)
  Parameter W_h;                      ///< (H, 3H)
  Parameter bias;                     ///< (4H)
  std::optional<DType> weight_dtype;  ///< to which W_x and W_h are rounded in products; unset: they are not

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes are positive; DTypeError for a `weight_dtype` other than bf16 and f16, or with
  /// parameters that are not f32.
  GRUCell(std::int64_t input_size, std::int64_t hidden_size, GRUCellOptions options = {},
          Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive; DTypeError for a `weight_dtype` other than bf16 and f16, or with parameters that are not f32.
  GRUCell(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
          GRUCellOptions options = {}, Location where = Location::here())
      : GRUCell(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  /// The width I of the input.
  std::int64_t input_size() const { return W_x.size(0); }
  /// The width H of the state.
  std::int64_t hidden_size() const { return W_h.size(0); }
  /// The parameters, for `gru` and `gru_cell`.
  RecurrentWeights weights() const { return {W_x, W_h, bias, weight_dtype}; }
  /// A state h (batch, H) of zeros, in the cell's dtype.
  Tensor initial_state(std::int64_t batch, Location where = Location::here()) const;

  /// The next h (B, H).
  /// Throws: ShapeError unless x is (B, I) and h (B, H); DTypeError unless they have the dtype of the weights; Error
  /// for an undefined one.
  Tensor operator()(const Arg& x, const Tensor& h) const;
};

}  // namespace reel::nn
