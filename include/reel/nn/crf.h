#pragma once

#include <reel/nn/module.h>
#include <reel/nn/packed.h>

namespace reel::nn {

struct CRFOptions {
  /// Of all three parameters; null: uniform on ±0.1.
  Initialiser initialiser = {};
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// The best tags, and their scores.
struct CRFTags {
  Packed tags;    ///< elements (N), i64
  Tensor scores;  ///< (B), of the parameters' dtype
};

inline std::vector<Tensor*> tensors_of(CRFTags& result) { return {&result.tags.elements, &result.scores}; }

/// A conditional random field over a chain of tags: an output layer that weighs whole sequences. With emissions e (T, K)
/// of one sequence and tags y:
///
///     s(y) = start[y₁] + Σ_t e[t, y_t] + Σ_{t > 1} transitions[y_{t−1}, y_t] + end[y_T]
///     log p(y) = s(y) − log Z            Z = Σ over all tags of exp s
///
/// log Z by the forward algorithm in log space. The gradient of log Z by the emissions are the probabilities of each tag at
/// each step. A sequence of length 0 has the one empty tagging, with log p = log Z = 0.
///
///     Tensor loss = -mean(crf(emissions, tags));       // emissions: Packed, elements (N, K); tags: (N)
///     Packed best = crf.decode(emissions).tags;
///
/// Hooks see the emissions' elements and the tags; these are undefined in `log_partition` and `decode`.
/// Source: Lafferty et al., Conditional random fields (ICML 2001); start and end scores as in pytorch-crf.
struct CRF : Module {
  Parameter transitions;  ///< (K, K): from row to column
  Parameter start, end;   ///< (K)

  /// Throws: ShapeError unless there is at least one tag.
  explicit CRF(std::int64_t tags, CRFOptions options = {}, Location where = Location::here());
  CRF(Module& parent, std::string_view name, std::int64_t tags, CRFOptions options = {},
      Location where = Location::here())
      : CRF(tags, options, where) {
    join(parent, name, where);
  }

  /// log p of the tags of each sequence: (B). `tags` (N), i64, as the emissions lie.
  /// Throws: ShapeError unless emissions are (N, K), floating, of N elements, and tags (N); DTypeError; IndexError for a
  /// tag outside [0, K).
  Tensor operator()(const Packed& emissions, const Tensor& tags, Location where = Location::here()) const;
  /// log Z of each sequence: (B). Throws: as above.
  Tensor log_partition(const Packed& emissions, Location where = Location::here()) const;
  /// The tags with the largest score, by Viterbi's algorithm; of equals those with the lower number at the last step where
  /// they differ. Nothing is recorded. Throws: as above.
  CRFTags decode(const Packed& emissions, Location where = Location::here()) const;
};

}  // namespace reel::nn
