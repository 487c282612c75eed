#pragma once

#include <memory>
#include <span>
#include <vector>

#include <reel/reel.h>

namespace reel_test {

/// A model with its data and its optimiser, for tests in which allocations of a training step fail.
class FaultyModel {
 public:
  virtual ~FaultyModel() = default;
  /// The loss of part 0 or 1 of the data.
  virtual reel::Tensor loss(int part) const = 0;
  /// Called between a backward and the optimiser's step.
  virtual void clip() const {}

  std::vector<reel::Tensor> parameters;
  std::unique_ptr<reel::optim::Optimiser> optimiser;
};

struct FaultyModelKind {
  const char* name;
  /// `wide`: large enough that loops are shared among threads.
  std::unique_ptr<FaultyModel> (*make)(bool wide);
};

/// A multi-layer perceptron with Adam, and one with an optimiser of ops; an LSTM over ragged sequences with momentum and clipping; a tree-LSTM with Adagrad
/// and a table whose gradient comes by rows; and what else a tape does: a checkpoint, a gradient's gradient, an overwrite.
std::span<const FaultyModelKind> faulty_models();

}  // namespace reel_test
