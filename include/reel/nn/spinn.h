#pragma once

#include <optional>
#include <span>
#include <vector>

#include <reel/nn/linear.h>
#include <reel/nn/lstm.h>
#include <reel/nn/packed.h>

/// \file
/// A stack-augmented parser-interpreter: sentences as trees, built by shifting words onto a stack and reducing its top
/// two.
/// Source: Bowman et al., A fast unified model for parsing and sentence understanding (ACL 2016).

namespace reel::nn {

/// Options of SPINN and its parts.
struct SPINNOptions {
  /// The width E of the tracker's state; 0 (default): no tracker.
  std::int64_t tracker_size = 0;
  DType dtype = DType::f32;  ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// The state of a node of two children, given the state of the tracker: a = [h_left; h_right; e] W + b, and
/// `tree_lstm_cell`.
/// Source: Bowman et al., A fast unified model for parsing and sentence understanding (ACL 2016).
struct SPINNReduce : Module {
  Linear arguments;  ///< (2H + E) → (5H)

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless the hidden size is positive and the tracker's not negative.
  SPINNReduce(std::int64_t hidden_size, SPINNOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless the hidden size
  /// is positive and the tracker's not negative.
  SPINNReduce(Module& parent, std::string_view name, std::int64_t hidden_size, SPINNOptions options = {},
              Location where = Location::here())
      : SPINNReduce(hidden_size, options, where) {
    join(parent, name, where);
  }

  /// The state of the node: states (B, H), tracking (B, E), undefined without a tracker.
  /// Throws: ShapeError unless they fit; DTypeError unless they have the dtype of the weights.
  LSTMState operator()(const LSTMState& left, const LSTMState& right, const Tensor& tracking = {},
                       Location where = Location::here()) const;
};

/// The tracker: an LSTM that reads the next word and the top two of the stack, [h_word; h_top; h_second], at each step.
/// Source: Bowman et al., A fast unified model for parsing and sentence understanding (ACL 2016).
struct SPINNTracker : Module {
  LSTMCell cell;      ///< 3H → E
  Linear transition;  ///< E → 2: logits of shift and reduce

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes are positive.
  SPINNTracker(std::int64_t hidden_size, SPINNOptions options, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive.
  SPINNTracker(Module& parent, std::string_view name, std::int64_t hidden_size, SPINNOptions options,
               Location where = Location::here())
      : SPINNTracker(hidden_size, options, where) {
    join(parent, name, where);
  }

  /// The next state, whose h `SPINNReduce` takes. h of each operand: (B, H).
  /// Throws: ShapeError unless they fit; DTypeError unless they have the dtype of the weights.
  LSTMState operator()(const Arg& word, const Tensor& top, const Tensor& second, const LSTMState& state) const;
};

/// A step of the parser: shift the next word onto the stack, or reduce its top two to one.
enum class Transition : std::uint8_t { shift, reduce };

/// The result of SPINN.
struct SPINNOutput {
  LSTMState root;  ///< h and c (B, H): the state of the root of each sentence
  Tensor
      logits;  ///< (N, 2) of each transition of the first sentence, then of the second …; undefined without a tracker
};

/// The tensors of a result, for hooks.
inline std::vector<Tensor*> tensors_of(SPINNOutput& result) { return {&result.root.h, &result.root.c, &result.logits}; }

/// Builds the trees of a batch of sentences side by side: all that reduce at a step do so together.
/// Source: Bowman et al., A fast unified model for parsing and sentence understanding (ACL 2016).
struct SPINN : Module {
  SPINNReduce reduce;                   ///< computes the state of a node
  std::optional<SPINNTracker> tracker;  ///< none for a tracker size of 0

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless the hidden size is positive and the tracker's not negative.
  SPINN(std::int64_t hidden_size, SPINNOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless the hidden size
  /// is positive and the tracker's not negative.
  SPINN(Module& parent, std::string_view name, std::int64_t hidden_size, SPINNOptions options = {},
        Location where = Location::here())
      : SPINN(hidden_size, options, where) {
    join(parent, name, where);
  }

  /// The root states of the trees: words: h and c of each word, side by side, elements (words, 2H). A sentence of n
  /// words has 2n − 1 transitions.
  /// Throws: ShapeError for other elements, or not as many lists of transitions as sentences; Error for a sentence
  /// without words, or transitions that build no tree of it.
  SPINNOutput operator()(const Packed& words, std::span<const std::vector<Transition>> transitions,
                         Location where = Location::here()) const;
};

}  // namespace reel::nn
