#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <reel/debug/statistics.h>
#include <reel/detail/immovable.h>
#include <reel/error.h>

namespace reel {

namespace debug {

/// A description of an op that gave NaN or infinity.
struct Anomaly {
  std::string op;  ///< the name of the op
  /// In a backward pass, the op whose gradient was being computed; else empty.
  std::string gradient_of;
  /// The index of the op's output.
  int output_index = 0;
  /// Statistics of that output.
  TensorStatistics output;
  /// A floating input of the op.
  struct Input {
    int index;         ///< its index among the inputs
    Location made_at;  ///< the line that made it
    /// True if the op overwrote it in place: the statistics are those of the values afterwards.
    bool overwritten;
    TensorStatistics statistics;  ///< statistics of its values
  };
  std::vector<Input> inputs;  ///< the op's floating inputs
};

}  // namespace debug

/// An error: the first NaN or infinity under `debug::detect_anomaly`. `what()` is a sentence with the op, its caller's
/// line, the shape and dtype of its output, the counts and the first position of NaN and infinity, followed by one line
/// for each floating input.
class AnomalyError : public Error {
 public:
  /// An error of one sentence with the caller's location, followed by more lines.
  AnomalyError(const std::string& sentence, Location where, const std::string& lines, debug::Anomaly anomaly)
      : Error(sentence, where, lines), anomaly_(std::make_shared<const debug::Anomaly>(std::move(anomaly))) {}

  /// The op, its output and inputs.
  const debug::Anomaly& anomaly() const { return *anomaly_; }

 private:
  std::shared_ptr<const debug::Anomaly> anomaly_;
};

namespace debug {

/// Options of `detect_anomaly`.
struct AnomalyOptions {
  /// Whether infinities are anomalies too; else only NaN is, as for ctc_loss with .zero_infinity. A −∞ that an operand
  /// of a forward op has already, as masks do, is none. Default true.
  bool infinities = true;
};

/// The scope that `detect_anomaly` opens. Lives on the stack only.
class [[nodiscard]] AnomalyScope : detail::Immovable {
 public:
  /// Opens the scope: see `detect_anomaly`.
  explicit AnomalyScope(AnomalyOptions options);
  /// Closes the scope.
  ~AnomalyScope();
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 private:
  class Detector;
  std::unique_ptr<Detector> detector_;
};

/// `auto scope = debug::detect_anomaly();`: while the scope lives, the first op of this thread, forward or backward,
/// that gives NaN or infinity throws an AnomalyError. Each floating output is read once more for it. Tensors that are
/// created, and views, are not checked: the first op that computes from a NaN is named, and its inputs' statistics show
/// it. Scopes nest; each checks by its own options.
inline AnomalyScope detect_anomaly(AnomalyOptions options = {}) { return AnomalyScope(options); }

}  // namespace debug
}  // namespace reel
