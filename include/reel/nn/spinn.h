#pragma once

#include <optional>
#include <span>
#include <vector>

#include <reel/nn/linear.h>
#include <reel/nn/lstm.h>
#include <reel/nn/packed.h>

// A stack-augmented parser-interpreter: sentences as trees, built by shifting words onto a stack and reducing its top two.
// Source: Bowman et al., A fast unified model for parsing and sentence understanding (ACL 2016).

namespace reel::nn {

struct SPINNOptions {
  /// Width of the tracker's state; 0: no tracker.
  std::int64_t tracker_size = 0;
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// The state of a node of two children, and of what the tracker knows: a = [h_left; h_right; e] W + b, and `tree_lstm_cell`.
struct SPINNReduce : Module {
  Linear arguments;  ///< (2H + E) → (5H)

  /// Throws: ShapeError unless the size is positive, and the tracker's not negative.
  SPINNReduce(std::int64_t hidden_size, SPINNOptions options = {}, Location where = Location::here());
  SPINNReduce(Module& parent, std::string_view name, std::int64_t hidden_size, SPINNOptions options = {},
              Location where = Location::here())
      : SPINNReduce(hidden_size, options, where) {
    join(parent, name, where);
  }

  /// States (B, H), tracking (B, E), undefined without a tracker. Throws: ShapeError unless they fit; DTypeError unless they
  /// have the weights' dtype.
  LSTMState operator()(const LSTMState& left, const LSTMState& right, const Tensor& tracking = {},
                       Location where = Location::here()) const;
};

/// Reads the word to come and the top two of the stack, [h_word; h_top; h_second], at each step.
struct SPINNTracker : Module {
  LSTMCell cell;      ///< 3H → E
  Linear transition;  ///< E → 2: logits of shift and reduce

  SPINNTracker(std::int64_t hidden_size, SPINNOptions options, Location where = Location::here());
  SPINNTracker(Module& parent, std::string_view name, std::int64_t hidden_size, SPINNOptions options,
               Location where = Location::here())
      : SPINNTracker(hidden_size, options, where) {
    join(parent, name, where);
  }

  /// The next state; its h is what `SPINNReduce` takes. h of each: (B, H). Throws: ShapeError unless they fit.
  LSTMState operator()(const Arg& word, const Tensor& top, const Tensor& second, const LSTMState& state) const;
};

enum class Transition : std::uint8_t { shift, reduce };

struct SPINNOutput {
  LSTMState root;  ///< (B, H) each
  Tensor
      logits;  ///< (N, 2) of each transition of the first sentence, then of the second …; undefined without a tracker
};

inline std::vector<Tensor*> tensors_of(SPINNOutput& result) { return {&result.root.h, &result.root.c, &result.logits}; }

/// Builds the trees of a batch of sentences side by side: all that are to reduce at a step do so together.
struct SPINN : Module {
  SPINNReduce reduce;
  std::optional<SPINNTracker> tracker;

  SPINN(std::int64_t hidden_size, SPINNOptions options = {}, Location where = Location::here());
  SPINN(Module& parent, std::string_view name, std::int64_t hidden_size, SPINNOptions options = {},
        Location where = Location::here())
      : SPINN(hidden_size, options, where) {
    join(parent, name, where);
  }

  /// words: h and c of each word, side by side, elements (words, 2H). A sentence of n words has 2n − 1 transitions.
  /// Throws: ShapeError for other elements, or not as many lists of transitions as sentences; Error for a sentence without
  /// words, or transitions that build no tree of it.
  SPINNOutput operator()(const Packed& words, std::span<const std::vector<Transition>> transitions,
                         Location where = Location::here()) const;
};

}  // namespace reel::nn
