#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <reel/data/source.h>
#include <reel/tape.h>

namespace reel::nn {
class Module;
}  // namespace reel::nn

namespace reel::optim {
class Optimiser;
}  // namespace reel::optim

/// \file
/// Training by several processes, which `tools/run SAMPLE --ranks N` starts. A program has alone.cpp, for one process, or
/// together.cpp.

namespace samples {

/// The number of this process, in [0, ranks()).
int rank();
/// The number of processes.
int ranks();
/// Waits until all processes have called it.
void wait_for_ranks();
/// Runs the body of main and returns its exit status; an error of one process ends all of them.
int run_on_ranks(const std::function<int()>& body);

/// The models of all processes, which train as one.
class Replicas {
 public:
  /// `by_rows`: tables whose gradients come by rows.
  Replicas(reel::nn::Module& model, reel::optim::Optimiser& optimiser, std::vector<reel::Tensor> by_rows = {});
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  /// Checks the loss, a mean over `count` items, and differentiates the mean over the items of all processes, which is
  /// returned. `loss`: undefined in a process without items. `sources`: of the items, for errors.
  double backward(reel::Tape& tape, const reel::Tensor& loss, double count,
                  const std::vector<reel::data::Source>& sources);
  /// Checks that the models of all processes are equal to the bit. Throws: reel::Error that names what is not.
  void check() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace samples
