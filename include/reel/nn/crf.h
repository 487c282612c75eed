#pragma once

#include <reel/nn/module.h>
#include <reel/nn/packed.h>

namespace reel::nn {

/// Options of CRF.
struct CRFOptions {
  /// The initial values of all three parameters; null (default): uniform on ±0.1.
  Initialiser initialiser = {};
  DType dtype = DType::f32;  ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// The best tags, and their scores.
struct CRFTags {
  Packed tags;    ///< elements (N), i64: the best tag of each element
  Tensor scores;  ///< (B), f32, or f64 of f64 parameters: s(y) of each sequence's best tags
};

/// The tensors of a result, for hooks.
inline std::vector<Tensor*> tensors_of(CRFTags& result) { return {&result.tags.elements, &result.scores}; }

/// A conditional random field over a chain of tags: an output layer that weighs whole sequences. With emissions e (T,
/// K) of one sequence and tags y:
///
///     s(y) = start[y₁] + Σ_t e[t, y_t] + Σ_{t > 1} transitions[y_{t−1}, y_t] + end[y_T]
///     log p(y) = s(y) − log Z            Z = Σ over all tags of exp s
///
/// log Z by the forward algorithm in log space. The gradient of log Z with respect to the emissions is the probability
/// of each tag at each step. Halves are added up in f32, and log p and log Z are not rounded to them. A sequence of
/// length 0 has the one empty tagging, with log p = log Z = 0.
///
///     Tensor loss = -mean(crf(emissions, tags));       // emissions: Packed, elements (N, K); tags: (N)
///     Packed best = crf.decode(emissions).tags;
///
/// Hooks observe the emissions' elements and the tags; the tags are undefined in `log_partition` and `decode`.
/// Source: Lafferty et al., Conditional random fields (ICML 2001); start and end scores as in pytorch-crf.
struct CRF : Module {
  Parameter transitions;  ///< (K, K): scores of a transition from row to column
  Parameter start,        ///< (K): scores of the first tag
      end;                ///< (K): scores of the last tag

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless there is at least one tag.
  explicit CRF(std::int64_t tags, CRFOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless there is at least
  /// one tag.
  CRF(Module& parent, std::string_view name, std::int64_t tags, CRFOptions options = {},
      Location where = Location::here())
      : CRF(tags, options, where) {
    join(parent, name, where);
  }

  /// log p of the tags of each sequence: (B). `tags`: (N), i64, in the order of the emissions.
  /// Throws: ShapeError unless emissions are (N, K) of N elements and tags (N); DTypeError unless they are floating and
  /// the tags i64; IndexError for a tag outside [0, K); Error for an undefined tensor.
  Tensor operator()(const Packed& emissions, const Tensor& tags, Location where = Location::here()) const;
  /// log Z of each sequence: (B).
  /// Throws: ShapeError unless emissions are (N, K) of N elements; DTypeError unless they are floating; Error for an
  /// undefined tensor.
  Tensor log_partition(const Packed& emissions, Location where = Location::here()) const;
  /// The tags with the largest score, by Viterbi's algorithm; of equals those with the lower index at the last step
  /// where they differ. No gradient.
  /// Throws: ShapeError unless emissions are (N, K) of N elements; DTypeError unless they are floating; Error for an
  /// undefined tensor.
  CRFTags decode(const Packed& emissions, Location where = Location::here()) const;
};

}  // namespace reel::nn
