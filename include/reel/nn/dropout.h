#pragma once

#include <reel/nn/module.h>
#include <reel/ops/random.h>

namespace reel::nn {

/// x / (1 − p) with each element set to 0 with probability p while training; otherwise a copy of x.
/// Source: PyTorch's Dropout.
struct Dropout : Module {
  /// A layer by itself, not part of a module. `probability`: that with which an element is dropped, in [0, 1], default
  /// 0.5; `generator`: null (default) for this thread's.
  /// Throws: Error for a probability outside [0, 1].
  explicit Dropout(double probability = 0.5, Generator* generator = nullptr, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`. `probability`: that with which an element is dropped, in [0,
  /// 1], default 0.5; `generator`: null (default) for this thread's.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and for a probability outside [0,
  /// 1].
  Dropout(Module& parent, std::string_view name, double probability = 0.5, Generator* generator = nullptr,
          Location where = Location::here())
      : Dropout(probability, generator, where) {
    join(parent, name, where);
  }

  /// x with elements dropped while training; otherwise a copy of x.
  /// Throws: while training, DTypeError unless x is floating; Error if x is undefined.
  Tensor operator()(const Arg& x) const;

 private:
  DropoutOptions options_;
};

/// `dropout2d` while training, which sets whole channels to 0; otherwise a copy of x.
/// Source: PyTorch's Dropout2d.
struct Dropout2d : Module {
  /// A layer by itself, not part of a module. `probability`: that with which a channel is dropped, in [0, 1], default
  /// 0.5; `generator`: null (default) for this thread's.
  /// Throws: Error for a probability outside [0, 1].
  explicit Dropout2d(double probability = 0.5, Generator* generator = nullptr, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`. `probability`: that with which a channel is dropped, in [0,
  /// 1], default 0.5; `generator`: null (default) for this thread's.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and for a probability outside [0,
  /// 1].
  Dropout2d(Module& parent, std::string_view name, double probability = 0.5, Generator* generator = nullptr,
            Location where = Location::here())
      : Dropout2d(probability, generator, where) {
    join(parent, name, where);
  }

  /// x, of (N, C, H, W) or (C, H, W), with channels dropped while training; otherwise a copy of x.
  /// Throws: while training, DTypeError unless x is floating and ShapeError for another rank; Error if x is undefined.
  Tensor operator()(const Arg& x) const;

 private:
  DropoutOptions options_;
};

/// `alpha_dropout` while training, which keeps mean and variance behind `selu`; otherwise a copy of x.
/// Source: PyTorch's AlphaDropout.
struct AlphaDropout : Module {
  /// A layer by itself, not part of a module. `probability`: that with which an element is dropped, in [0, 1], default
  /// 0.5; `generator`: null (default) for this thread's.
  /// Throws: Error for a probability outside [0, 1].
  explicit AlphaDropout(double probability = 0.5, Generator* generator = nullptr, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`. `probability`: that with which an element is dropped, in [0,
  /// 1], default 0.5; `generator`: null (default) for this thread's.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and for a probability outside [0,
  /// 1].
  AlphaDropout(Module& parent, std::string_view name, double probability = 0.5, Generator* generator = nullptr,
               Location where = Location::here())
      : AlphaDropout(probability, generator, where) {
    join(parent, name, where);
  }

  /// x with elements dropped while training; otherwise a copy of x.
  /// Throws: while training, DTypeError unless x is floating; Error if x is undefined.
  Tensor operator()(const Arg& x) const;

 private:
  DropoutOptions options_;
};

/// `variational_dropout` while training: one mask for all time steps of a sequence, along an axis; otherwise a copy of
/// x.
/// Source: Gal and Ghahramani, A theoretically grounded application of dropout in recurrent neural networks (NeurIPS
/// 2016).
struct VariationalDropout : Module {
  /// A layer by itself, not part of a module.
  /// Throws: Error for a probability outside [0, 1].
  explicit VariationalDropout(VariationalDropoutOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and for a probability outside [0,
  /// 1].
  VariationalDropout(Module& parent, std::string_view name, VariationalDropoutOptions options = {},
                     Location where = Location::here())
      : VariationalDropout(options, where) {
    join(parent, name, where);
  }

  /// x with elements dropped while training; otherwise a copy of x.
  /// Throws: while training, DTypeError unless x is floating and ShapeError for an axis that does not exist; Error if x
  /// is undefined.
  Tensor operator()(const Arg& x) const;

 private:
  VariationalDropoutOptions options_;
};

}  // namespace reel::nn
