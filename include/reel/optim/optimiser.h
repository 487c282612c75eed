#pragma once

#include <vector>

#include <reel/tensor.h>

namespace reel::optim {

/// Changes parameters so that the loss whose gradients they hold becomes less.
///
///     tape.backward(loss);
///     optimiser.step();
///     optimiser.zero_grad();
class Optimiser {
 public:
  Optimiser(const Optimiser&) = delete;
  Optimiser& operator=(const Optimiser&) = delete;
  virtual ~Optimiser() = default;

  /// Overwrites every parameter that has a gradient; the others stay as they are. Of one with a gradient by rows, only
  /// those rows are changed, and what the optimiser keeps for them: the time does not depend on how many others there
  /// are. An open tape that still needs the old values throws in its backward.
  void step(Location where = Location::here());
  /// Forgets the gradient of every parameter.
  void zero_grad() const;

  const std::vector<Tensor>& parameters() const { return parameters_; }
  double learning_rate() const { return learning_rate_; }
  /// Takes effect with the next step. Throws: Error unless it is 0 or more.
  void set_learning_rate(double rate, Location where = Location::here());

 protected:
  /// Throws: Error unless every tensor is a contiguous parameter of f32 or f64, listed once, and the rate is 0 or more.
  Optimiser(const char* name, std::vector<Tensor> parameters, double learning_rate, Location where);

  const char* name() const { return name_; }

 private:
  /// Overwrites parameter number `index`; the gradient is contiguous and of its dtype.
  virtual void update(std::size_t index, Tensor& parameter, const Tensor& gradient, Location where) = 0;
  /// The same for rows of the parameter.
  virtual void update_rows(std::size_t index, Tensor& parameter, const RowGradient& gradient, Location where) = 0;

  const char* name_;
  std::vector<Tensor> parameters_;
  double learning_rate_;
};

}  // namespace reel::optim
