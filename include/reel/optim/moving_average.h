#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <reel/detail/immovable.h>
#include <reel/named_tensor.h>
#include <reel/tensor.h>

namespace reel::detail {
struct AverageNumbers;
}

namespace reel::optim {

/// Options of MovingAverage.
struct MovingAverageOptions {
  /// δ: the share of the average that an update keeps, in [0, 1]. Default 0.999.
  double decay = 0.999;
  /// Whether update t, from 1, keeps a share of at most (1 + t) / (10 + t), so that the initial values fade sooner.
  /// Default false.
  bool warms_up = false;
};

/// The exponential moving average of weights, which starts with their present values:
///
///     a = δ a + (1 − δ) w
///
/// It is updated after each step, and can be in the model for a while:
///
///     optim::MovingAverage average(model.parameters());
///     for (const train::Batch& batch : batches) {
///       train_step(batch);
///       average.update();
///     }
///     {
///       auto scope = average.in_place();   // the model has the averages
///       evaluate(model);
///     }                                    // the model has its own weights again
///
/// Source: Polyak and Juditsky, Acceleration of stochastic approximation by averaging (1992), as TensorFlow's
/// ExponentialMovingAverage.
class MovingAverage {
 public:
  /// Averages parameters, frozen ones too, or other tensors such as the buffers of a module.
  /// Throws: Error for a decay out of range, undefined tensors, and one that is listed twice; DTypeError unless all are
  /// f32 or f64; ShapeError unless contiguous.
  explicit MovingAverage(std::vector<Tensor> tensors, MovingAverageOptions options = {},
                         Location where = Location::here());

  /// Updates the averages with the present values.
  /// Throws: Error while a scope has the averages in place, and for a parameter that its module has replaced.
  void update(Location where = Location::here());
  /// The number of updates.
  std::int64_t steps() const { return steps_; }
  /// The tensors, in the order of their indices.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// A copy of the average of a tensor, by its index. Throws: IndexError for an index out of range.
  Tensor average(std::size_t index, Location where = Location::here()) const;

  /// While it lives, the tensors hold the averages. Its start and its end overwrite the tensors, as in-place functions
  /// do.
  class Scope : detail::Immovable {
   public:
    /// Gives the tensors their own values back.
    ~Scope();

   private:
    friend class MovingAverage;
    Scope(MovingAverage& average, Location where);
    MovingAverage& average_;
    Location where_;
  };
  /// Exchanges the values of the tensors with the averages until the scope ends; this object must outlive it. After an
  /// exception nothing has changed.
  /// Throws: Error for a second scope at a time; TapeError for a tensor that is no parameter and that an open tape
  /// tracks.
  [[nodiscard]] Scope in_place(Location where = Location::here());

  /// Copies of all that it keeps: "steps", and "7.average" and the like by the index of the tensor.
  std::vector<NamedTensor> state(Location where = Location::here()) const;
  /// Restores what `state()` gave. After an exception nothing has changed.
  /// Throws: Error while a scope lives, for a name that is missing or unknown, or a value out of range; ShapeError or
  /// DTypeError for a tensor that does not fit.
  void load_state(std::span<const NamedTensor> state, Location where = Location::here());
  /// Restores what `state()` gave. After an exception nothing has changed.
  /// Throws: Error while a scope lives, for a name that is missing or unknown, or a value out of range; ShapeError or
  /// DTypeError for a tensor that does not fit.
  void load_state(const std::vector<NamedTensor>& state, Location where = Location::here());

 private:
  void check_own(const char* what, Location where) const;
  void check_untracked(Location where) const;
  void swap(Location where) noexcept;
  void make_spares(Location where);
  detail::AverageNumbers numbers_of(std::int64_t steps) const;
  void update_at_replays();

  MovingAverageOptions options_;
  std::vector<Tensor> tensors_, averages_;
  std::vector<Tensor> spares_;  // while a scope lives, what is swapped on a device passes through these
  std::int64_t steps_ = 0;
  bool in_place_ = false;
  std::shared_ptr<const char> presence_;  // what a graph that repeats an update knows this by
};

}  // namespace reel::optim
