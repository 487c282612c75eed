#pragma once

#include <functional>
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
  /// Whether `SPINN` has a cell of its own, `SPINN::reduce`; default true. False: each call is given a `SPINNCell`.
  bool reduce = true;
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

/// A function that composes the state of a node from those of its children, in place of `SPINNReduce`: left, right: h
/// and c (B, H), of the B sentences that reduce at a step; tracking: h of the tracker (B, E), undefined without one.
/// Returns h and c (B, H).
using SPINNCell = std::function<LSTMState(const LSTMState& left, const LSTMState& right, const Tensor& tracking)>;

/// The result of SPINN. Its N rows are the transitions of the first sentence, then of the second …: 2n − 1 of a
/// sentence of n words.
struct SPINNOutput {
  LSTMState root;  ///< h and c (B, H): the state of the root of each sentence
  Tensor logits;   ///< (N, 2): the tracker's logits of shift and reduce; undefined without a tracker
  Tensor nodes;    ///< (N, H): h of the node that each transition put on the stack: a word, or a node of two children
  std::vector<std::vector<Transition>> transitions;  ///< those of each sentence, given or predicted
};

/// The tensors of a result, for hooks.
inline std::vector<Tensor*> tensors_of(SPINNOutput& result) {
  return {&result.root.h, &result.root.c, &result.logits, &result.nodes};
}

/// Reads sentences with a stack, and builds their trees: a transition shifts the next word onto the stack, or reduces its
/// top two nodes to one. The sentences of a batch run side by side: all that reduce at a step do so together. A model
/// called with one sentence within `batch_map` runs together with those of the other examples.
///
///     SPINN parser(100, {.tracker_size = 30});
///     SPINNOutput given = parser(words, transitions);         // builds these trees
///     SPINNOutput predicted = parser(words);                  // builds trees of its own choice: predicted.transitions
/// Source: Bowman et al., A fast unified model for parsing and sentence understanding (ACL 2016).
struct SPINN : Module {
  std::int64_t hidden_size;             ///< H
  std::optional<SPINNReduce> reduce;    ///< computes the state of a node; none if the options say so
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

  /// Builds the trees that the transitions say. words: h and c of each word, side by side, elements (words, 2H). A
  /// sentence of n words has 2n − 1 transitions.
  /// Throws: ShapeError for other elements, or not as many lists of transitions as sentences; Error for a sentence
  /// without words, transitions that build no tree of it, or a layer without a cell.
  SPINNOutput operator()(const Packed& words, std::span<const std::vector<Transition>> transitions,
                         Location where = Location::here()) const {
    return run(words, transitions, nullptr, where);
  }
  /// Builds the trees that the transitions say, with a cell of the caller's: words: h and c of each word, side by side,
  /// elements (words, 2H). A sentence of n words has 2n − 1 transitions.
  /// Throws: ShapeError for other elements, not as many lists of transitions as sentences, or a result of the cell that is
  /// not (B, H); Error for a sentence without words, transitions that build no tree of it, or an empty function.
  SPINNOutput operator()(const Packed& words, std::span<const std::vector<Transition>> transitions,
                         const SPINNCell& cell, Location where = Location::here()) const {
    return run(words, transitions, &cell, where);
  }
  /// Builds trees of the tracker's choice: at each step the transition whose logit is larger, of those that are possible.
  /// A sentence is reduced only with two nodes on the stack, and shifted only while words are left, so that its 2n − 1
  /// transitions leave one node. words: h and c of each word, side by side, elements (words, 2H). The choice waits
  /// for the logits' values, and has no gradient; the logits have.
  /// Throws: ShapeError for other elements, or no sentence; Error for a sentence without words, or a layer without a
  /// tracker or without a cell.
  SPINNOutput operator()(const Packed& words, Location where = Location::here()) const {
    return run(words, std::nullopt, nullptr, where);
  }
  /// Builds trees of the tracker's choice with a cell of the caller's: at each step the transition whose logit is larger, of
  /// those that are possible. A sentence is reduced only with two nodes on the stack, and shifted only while words
  /// are left, so that its 2n − 1 transitions leave one node. words: h and c of each word, side by side, elements
  /// (words, 2H). The choice waits for the logits' values, and has no gradient; the logits have.
  /// Throws: ShapeError for other elements, no sentence, or a result of the cell that is not (B, H); Error for a
  /// sentence without words, a layer without a tracker, or an empty function.
  SPINNOutput operator()(const Packed& words, const SPINNCell& cell, Location where = Location::here()) const {
    return run(words, std::nullopt, &cell, where);
  }

 private:
  using Lists = std::span<const std::vector<Transition>>;
  SPINNOutput run(const Packed& words, std::optional<Lists> transitions, const SPINNCell* cell, Location where) const;
};

}  // namespace reel::nn
