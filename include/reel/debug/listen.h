#pragma once

#include <functional>
#include <memory>
#include <span>

#include <reel/detail/immovable.h>
#include <reel/tensor.h>

namespace reel::debug {

/// One call of an op.
struct OpEvent {
  const char* op;                         ///< the name of the op
  Location where;                         ///< the caller's line; in a backward pass, that of the differentiated op
  std::span<const Tensor* const> inputs;  ///< its inputs
  std::span<const Tensor> outputs;        ///< its results
};

/// A listener to ops: while it lives, `f` is called after every op of this thread, forward and backward. Ops that `f`
/// calls are not reported.
class Listen : detail::Immovable {
 public:
  /// Starts calling `f`.
  explicit Listen(std::function<void(const OpEvent&)> f);
  /// Stops calling `f`.
  ~Listen();

 private:
  class Forward;
  std::unique_ptr<Forward> forward_;
};

}  // namespace reel::debug
