#pragma once

#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "batching/checks.h"

namespace reel_test {

constexpr std::int64_t width = 4;

/// The features of a random program beside ops on the tensors of an example, as bits.
enum Feature : unsigned {
  views = 1,            ///< repeated, overlapping, stepped, reversed and empty rows
  scopes = 2,           ///< NoRecord, autocast, inner tapes, checkpoints, own gradients in examples
  listeners = 4,        ///< detect_anomaly and Profile within examples
  in_place = 8,         ///< sums in place, several of one tensor
  around = 16,          ///< NoRecord, a checkpoint, detect_anomaly or Profile around the batch
  hooks = 32,           ///< hooks and traces of tensors of an example
  late_watch = 64,      ///< a tensor that an example may have used is watched, or made a parameter, after the batch
  exceptions = 128,     ///< errors that the example handles; in some programs one that it does not
  inner_batches = 256,  ///< `both` and `batch_map` within examples
  outer_tape = 512,     ///< examples differentiate on the tape around the batch
  allocations = 1024,   ///< an allocation fails
};

struct Parameters {
  reel::Tensor W = (draw({width, width}) * 0.7).requires_grad(),
               wide = (draw({2 * width, width}) * 0.5).requires_grad(), bias = draw({width}).requires_grad(),
               table = draw({7, width}).requires_grad(), gates = draw({width, 4 * width}).requires_grad(),
               filters = draw({2, 1, 3}).requires_grad();
  reel::RecurrentWeights gru{draw({width, 3 * width}).requires_grad(), draw({width, 3 * width}).requires_grad(),
                             draw({4 * width}).requires_grad()};
  reel::Tensor mean = draw({width}), variance = 0.5 + reel::square(draw({width}));  // running statistics

  std::vector<reel::Tensor> all() const { return {W, wide, bias, table, gates, filters, gru.W_x, gru.W_h, gru.bias}; }
};

/// Thrown by a program at a chosen step.
struct Stop : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Stopping : std::uint8_t { exception, op, kernel };  ///< a Stop, or an error of a call or of its kernel
enum class Around : std::uint8_t { nothing, checkpoint, no_record, anomaly, profile };
/// How the tensor is made of which all examples take rows.
enum class Origin : std::uint8_t { plain, overwritten, watched, parameter, computed, paused, view };

/// A random program: what its examples are, and what happens around them.
struct Program {
  std::uint64_t seed;
  unsigned features;
  std::vector<reel::Tensor> inputs;  ///< of each example
  std::vector<std::uint64_t> seeds;  ///< of its steps; several examples have one
  Origin origin;                     ///< of the common rows
  Around around = Around::nothing;   ///< the batch
  bool second_order, persistent;
  bool rows_apart;          ///< the rows of which each example has its own are tensors of their own
  int late_kind;            ///< what is watched late: a number, a row, or a view that the example takes
  bool late_parameter;      ///< it becomes a parameter
  std::size_t late;         ///< the example whose tensor is watched late
  std::size_t stopped = 0;  ///< the example that stops at the step
  int stops_at = -1;        ///< −1: none
  Stopping stopping = Stopping::exception;

  /// `chosen_from`: the features that it may have.
  Program(std::uint64_t seed, unsigned chosen_from);
  bool has(Feature feature) const { return features & feature; }
};

/// Data shared by all examples of one run.
struct Common {
  const Parameters& parameters;
  const Program& program;
  const reel::BatchOptions& options;
  reel::Tape* tape;                        ///< for hooks; null: the examples may not use it
  reel::Tensor rows;                       ///< of which examples take views
  std::vector<reel::Tensor> numbers, own;  ///< for each example one that it may read, untracked
  std::vector<reel::Tensor>& taken;        ///< untracked views that examples have taken; undefined where there is none
  std::vector<std::string>& texts;         ///< what examples write down
};

/// One run of a random program by one example: the steps depend on the seed, and on values where it branches. It holds
/// matrices of the example's rows, vectors and numbers, all bounded.
class Run {
 public:
  Run(const Common& common, std::size_t example);

  reel::Tensor result();

 private:
  using Step = void (Run::*)(std::uint64_t choice);

  void step(std::uint64_t choice);
  void plain(std::uint64_t choice);
  void branch(std::uint64_t choice, const reel::Tensor& m, const reel::Tensor& v);
  void loop(const reel::Tensor& m);
  reel::Tensor some_rows(std::uint64_t choice) const;
  void take_rows(std::uint64_t choice);
  void take_empty_rows(std::uint64_t choice);
  void read_own(std::uint64_t choice);
  void pause(std::uint64_t choice);
  void cast(std::uint64_t choice);
  void differentiate(std::uint64_t choice);
  void differentiate_outside(std::uint64_t choice);
  void checkpoint_step(std::uint64_t choice);
  void replace_gradient(std::uint64_t choice);
  void detect_anomaly(std::uint64_t choice);
  void profile(std::uint64_t choice);
  void sum_in_place(std::uint64_t choice);
  void hook(std::uint64_t choice);
  void handle_error(std::uint64_t choice);
  void run_both(std::uint64_t choice);
  void run_inner_batch(std::uint64_t choice);
  [[noreturn]] void stop();

  /// n with the rows of m: its first one, repeated.
  static reel::Tensor n_like(const reel::Tensor& n, const reel::Tensor& m);
  void add(reel::Tensor m) { matrices_.push_back(std::move(m)); }
  void note(const std::string& text);
  const reel::Tensor& matrix(std::uint64_t choice) const { return matrices_[choice % matrices_.size()]; }
  const reel::Tensor& vector(std::uint64_t choice) const { return vectors_[choice % vectors_.size()]; }

  const Common& common_;
  const Parameters& p_;
  std::size_t example_;
  std::mt19937_64 random_;
  int step_ = 0;
  std::vector<Step> further_;  // steps of the program's features
  std::vector<reel::Tensor> matrices_, vectors_;
};

/// The outcome of a run: results, gradients, and texts of errors and of the examples.
struct Outcome {
  std::vector<reel::Tensor> tensors;
  reel::Tensor values;  ///< the results alone; undefined at second order
  std::vector<std::string> texts;
};

/// Runs a program.
Outcome outcome_of(const Program& program, const Parameters& parameters, const reel::BatchOptions& options);

}  // namespace reel_test
