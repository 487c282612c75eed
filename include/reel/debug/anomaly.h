#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <reel/debug/statistics.h>
#include <reel/error.h>

namespace reel {

namespace debug {

/// An op that gave NaN or Inf, in numbers.
struct Anomaly {
  std::string op;
  /// In a backward, the op whose gradient it happened in; else empty.
  std::string gradient_of;
  /// Which of the op's outputs, and what that holds.
  int output_number = 0;
  TensorStatistics output;
  /// The op's floating inputs.
  struct Input {
    int number;
    Location made_at;
    /// The op was in place here: these are the values after it.
    bool overwritten;
    TensorStatistics statistics;
  };
  std::vector<Input> inputs;
};

}  // namespace debug

/// The first NaN or Inf under `debug::detect_anomaly`. `what()` is a sentence with the op, its caller's line, the shape
/// and dtype of its output, the counts and the first place of NaN and Inf, followed by one line for each floating input.
class AnomalyError : public Error {
 public:
  AnomalyError(const std::string& sentence, Location where, const std::string& lines, debug::Anomaly anomaly)
      : Error(sentence, where, lines), anomaly_(std::make_shared<const debug::Anomaly>(std::move(anomaly))) {}

  const debug::Anomaly& anomaly() const { return *anomaly_; }

 private:
  std::shared_ptr<const debug::Anomaly> anomaly_;
};

namespace debug {

struct AnomalyOptions {
  /// Infinities count too. Without it only NaN does: for nets that mask with −∞, as attention and
  /// log_softmax with a mask do, and ctc_loss where .zero_infinity sets in.
  bool infinities = true;
};

/// What `detect_anomaly` returns. Lives on the stack only.
class [[nodiscard]] AnomalyScope {
 public:
  explicit AnomalyScope(AnomalyOptions options);
  ~AnomalyScope();
  AnomalyScope(const AnomalyScope&) = delete;
  AnomalyScope& operator=(const AnomalyScope&) = delete;
  static void* operator new(std::size_t) = delete;
  static void* operator new[](std::size_t) = delete;

 private:
  class Detector;
  std::unique_ptr<Detector> detector_;
};

/// `auto scope = debug::detect_anomaly();`: while the scope lives, the first op of this thread, forward or backward, that
/// gives NaN or Inf throws an AnomalyError. Each floating output is read once more for it. What tensors are created with
/// is not looked at, nor are views: the first op that computes from a NaN is named, and its inputs' statistics show it.
/// Scopes nest; each looks for what it was told to.
inline AnomalyScope detect_anomaly(AnomalyOptions options = {}) { return AnomalyScope(options); }

}  // namespace debug
}  // namespace reel
