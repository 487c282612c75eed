#pragma once

#include <reel/nn/module.h>
#include <reel/ops/random.h>

namespace reel::nn {

/// `dropout` in training; afterwards a copy of x. Source: PyTorch's Dropout.
struct Dropout : Module {
  /// Throws: Error for a probability outside [0, 1].
  explicit Dropout(double probability = 0.5, Generator* generator = nullptr, Location where = Location::here());
  Dropout(Module& parent, std::string_view name, double probability = 0.5, Generator* generator = nullptr,
          Location where = Location::here())
      : Dropout(probability, generator, where) {
    join(parent, name, where);
  }

  Tensor operator()(const Arg& x) const;

 private:
  DropoutOptions options_;
};

/// `alpha_dropout` in training, which keeps mean and variance behind `selu`; afterwards a copy of x.
/// Source: PyTorch's AlphaDropout.
struct AlphaDropout : Module {
  /// Throws: Error for a probability outside [0, 1].
  explicit AlphaDropout(double probability = 0.5, Generator* generator = nullptr, Location where = Location::here());
  AlphaDropout(Module& parent, std::string_view name, double probability = 0.5, Generator* generator = nullptr,
               Location where = Location::here())
      : AlphaDropout(probability, generator, where) {
    join(parent, name, where);
  }

  Tensor operator()(const Arg& x) const;

 private:
  DropoutOptions options_;
};

/// `variational_dropout` in training: one mask for all steps, along an axis, of a sequence; afterwards a copy of x.
struct VariationalDropout : Module {
  /// Throws: Error for a probability outside [0, 1].
  explicit VariationalDropout(VariationalDropoutOptions options = {}, Location where = Location::here());
  VariationalDropout(Module& parent, std::string_view name, VariationalDropoutOptions options = {},
                     Location where = Location::here())
      : VariationalDropout(options, where) {
    join(parent, name, where);
  }

  Tensor operator()(const Arg& x) const;

 private:
  VariationalDropoutOptions options_;
};

}  // namespace reel::nn
