#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <reel/tensor.h>

namespace reel::nn {
struct NamedTensor;
}
namespace reel::detail {
struct AverageNumbers;
}

namespace reel::optim {

struct MovingAverageOptions {
  /// δ: how much of the average an update keeps, in [0, 1].
  double decay = 0.999;
  /// Keeps (1 + t) / (10 + t) at most in update t from 1, so that the first ones do not stick to the starting values.
  bool warms_up = false;
};

/// The exponential moving average of weights, which starts with what they are:
///
///     a = δ a + (1 − δ) w
///
///     optim::MovingAverage average(model.parameters());
///     for (…) { …; adam.step(); average.update(); }
///     {
///       auto scope = average.in_place();   // the model has the averages
///       evaluate(model);
///     }                                    // the model has its own weights again
///
/// Source: Polyak and Juditsky, Acceleration of stochastic approximation by averaging (1992), as TensorFlow's
/// ExponentialMovingAverage.
class MovingAverage {
 public:
  /// Of parameters, frozen ones too, or other tensors such as a module's buffers.
  /// Throws: Error for a decay out of range, undefined tensors, and one that is listed twice; DTypeError unless all are f32
  /// or f64; ShapeError unless contiguous.
  explicit MovingAverage(std::vector<Tensor> tensors, MovingAverageOptions options = {},
                         Location where = Location::here());

  /// Throws: Error while a scope has the averages in place, and for a parameter that its module has replaced.
  void update(Location where = Location::here());
  std::int64_t steps() const { return steps_; }
  /// Of tensor `number`; a copy. Throws: IndexError.
  Tensor average(std::size_t number, Location where = Location::here()) const;

  /// While it lives, the tensors hold the averages. It counts as an overwrite of them, at its start and at its end.
  class Scope {
   public:
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class MovingAverage;
    Scope(MovingAverage& average, Location where);
    MovingAverage& average_;
    Location where_;
  };
  /// The moving average has to outlive the scope. Throws: Error for a second one at a time; TapeError for a tensor that is
  /// no parameter and that an open tape tracks; and changes nothing then.
  [[nodiscard]] Scope in_place(Location where = Location::here());

  /// "steps", and "7.average" and the like by the tensor's number: copies.
  std::vector<nn::NamedTensor> state(Location where = Location::here()) const;
  /// Throws: as Optimiser::load_state; Error while a scope lives.
  void load_state(std::span<const nn::NamedTensor> state, Location where = Location::here());
  void load_state(const std::vector<nn::NamedTensor>& state, Location where = Location::here());

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
