#pragma once

#include <functional>
#include <memory>
#include <span>

#include <reel/tensor.h>

namespace reel::debug {

/// One op that has run.
struct OpEvent {
  const char* op;
  Location where;  ///< the caller's line; in a backward, the line of the op that is being differentiated
  std::span<const Tensor* const> inputs;
  std::span<const Tensor> outputs;
};

/// While it lives, `f` is called after every op of this thread, forward and backward. Ops that `f` calls
/// are not reported.
class Listen {
 public:
  explicit Listen(std::function<void(const OpEvent&)> f);
  ~Listen();
  Listen(const Listen&) = delete;
  Listen& operator=(const Listen&) = delete;

 private:
  class Forward;
  std::unique_ptr<Forward> forward_;
};

}  // namespace reel::debug
