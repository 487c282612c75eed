#pragma once

#include <deque>

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of LBFGS.
struct LBFGSOptions {
  /// The first step length that is tried along a direction; without line search, every step length; at least 0. Default
  /// 1.
  double learning_rate = 1;
  /// The directions followed in a step; at least 1. Default 20.
  std::int64_t max_iterations = 20;
  /// The evaluations of the loss after which a step ends with its present direction; 0 (default): 5/4 of
  /// `max_iterations`.
  std::int64_t max_evaluations = 0;
  /// A step ends where no element of the gradient is larger. Default 1e-7.
  double tolerance_gradient = 1e-7;
  /// A step ends where neither the loss nor any parameter changes by more. Default 1e-9.
  double tolerance_change = 1e-9;
  /// The number of recent changes from which the curvature is estimated; at least 1. Default 100.
  std::int64_t history_size = 100;
  /// Whether a direction is followed until the strong Wolfe conditions hold; else always by the learning rate. Default
  /// true.
  bool line_search = true;
};

/// A quasi-Newton method that minimises a function of its parameters without noise; with g the gradient, s the changes
/// of w and y those of g of the last `history_size` iterations:
///
///     d = −H g                       H: the inverse Hessian estimated from the pairs (s, y) and γ I, γ = s·y / y·y
///     w = w + t d                    where f(w + t d) ≤ f(w) + c₁ t g·d  and  |g(w + t d)·d| ≤ c₂ |g·d|
///
/// with c₁ = 10⁻⁴ and c₂ = 0.9. It needs the loss several times a step, at several places, always on identical data:
///
///     lbfgs.step([&] {
///       Tensor loss = mean(square(model(x) - y));
///       tape.backward(loss);
///       return loss.item();
///     });
///
/// If the loss throws, parameters are those from before the present direction. Step lengths where the loss is not
/// finite are too large. Parameters without a gradient are treated as having 0; a gradient by rows is made dense.
/// Throws: Error for options out of range; `step` for a loss or gradient that is not finite where the parameters are,
/// and without a loss.
/// Source: Nocedal and Wright, Numerical optimization (2006), algorithms 7.5, 3.5 and 3.6, in the variant of Schmidt's
/// minFunc (2005), as PyTorch's LBFGS computes it.
class LBFGS : public Optimiser {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit LBFGS(std::vector<Tensor> parameters, LBFGSOptions options = {}, Location where = Location::here());
  /// The number of groups: 1, all parameters together.
  std::size_t group_count() const override { return 1; }
  /// The options.
  const LBFGSOptions& options() const { return options_; }

 private:
  class Iterations;
  // The change of position s and of gradient y in one iteration, and 1 / (s·y).
  struct Change {
    Tensor position, gradient;
    double inverse_product;
  };

  double rate_of(std::size_t) const override { return options_.learning_rate; }
  void put_rate(std::size_t, double rate) override { options_.learning_rate = rate; }
  double momentum_of(std::size_t) const override;
  void put_momentum(std::size_t, double) override {}
  void make_step(Location where) override;
  double minimise(const std::function<double()>& loss, Location where) override;
  void add_state(std::vector<NamedTensor>& state) const override;
  void take_state(std::span<const NamedTensor> state, Location where) override;

  Tensor flat(bool gradients) const;

  LBFGSOptions options_;
  // All parameters concatenated, in the wider of their dtypes.
  std::int64_t size_ = 0;
  DType dtype_ = DType::f32;
  // Where the last iteration left off; undefined before the first.
  std::int64_t iterations_ = 0;
  Tensor direction_, gradient_;
  double length_ = 0, scale_ = 1;
  std::deque<Change> changes_;
};

}  // namespace reel::optim
