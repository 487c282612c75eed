#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <reel/tensor.h>

namespace reel::debug {

/// The kind of a recorded op.
enum class OpKind : std::uint8_t {
  /// No op: a tensor that no recorded op made, such as data or a parameter; recorded before the op that first uses it.
  source,
  forward,   ///< an op that ran outside of a backward pass
  backward,  ///< an op that ran within the gradient function of another one
  gradient,  ///< the complete gradients of the outputs of the op `forward`
};

/// The name of a kind: "source", "forward", "backward", "gradient".
std::string_view name_of(OpKind kind);

/// A tensor of a recorded run: an output of an op.
struct TensorId {
  std::uint64_t op = 0;      ///< the id of the op; 0: unknown
  std::uint32_t output = 0;  ///< the index among the outputs of the op
  /// True if both are one tensor.
  friend bool operator==(const TensorId&, const TensorId&) = default;
};

/// Statistics of the elements of a recorded tensor.
struct RecordedStatistics {
  double min = 0;               ///< the smallest finite element; NaN if there is none
  double max = 0;               ///< the largest finite element; NaN if there is none
  double mean = 0;              ///< the mean of the finite elements; NaN if there is none
  double norm = 0;              ///< the Euclidean norm of the finite elements; NaN if there is none
  std::int64_t nans = 0;        ///< the number of NaNs
  std::int64_t infinities = 0;  ///< the number of infinite elements
  std::int64_t zeros = 0;       ///< the number of elements that are 0

  /// The Euclidean norm of all elements: NaN if one is NaN, else ∞ if one is infinite, and 0 if there is none.
  double norm_of_all() const;
};

/// A tensor of a recorded run.
struct RecordedTensor {
  Shape shape;                    ///< its sizes
  DType dtype = DType::f32;       ///< its dtype
  Device device;                  ///< its device
  std::string_view name;          ///< given by `debug::name`, or a parameter's; empty: none
  bool has_statistics = false;    ///< true if statistics were recorded
  RecordedStatistics statistics;  ///< statistics of its elements
  std::uint64_t fingerprint = 0;  ///< a hash of its shape, dtype and elements in row-major order; 0: not recorded
  Tensor values;                  ///< a copy on the CPU; undefined if it was not kept
  /// The ascending indices of a forward result's units that are zero in all examples, if there are at most 4,096 units and
  /// no input is all zero. A unit is an index of the last axis, or of axis 1 if there are four axes or more.
  std::vector<std::int32_t> zero_units;

  /// The bytes of its elements.
  std::size_t bytes() const {
    return static_cast<std::size_t>(shape.numel()) * static_cast<std::size_t>(size_of(dtype));
  }
};

/// An op of a recorded run.
struct RecordedOp {
  std::uint64_t id = 0;           ///< from 1, in the order of execution
  OpKind kind = OpKind::forward;  ///< what it is
  std::string_view op;  ///< its name; of a source "data", "parameter" or "overwritten"; of a gradient the forward op's
  std::string_view file;                ///< the file of the caller; empty: unknown
  int line = 0;                         ///< the line of the caller
  std::string_view module;              ///< the path of the module that was running: "encoder.layers.2"; empty: none
  std::string_view notes;               ///< the active notes: "t = 3, example = tweets.tsv:45"
  std::int64_t step = 0;                ///< the number of optimiser steps before it
  std::int64_t start = 0;               ///< nanoseconds from the beginning of the recording
  std::int64_t duration = 0;            ///< nanoseconds; 0 for a source and for an op that waited to be batched
  std::uint32_t thread = 0;             ///< the index of its thread
  std::uint64_t forward = 0;            ///< of backward and gradient: the differentiated op; 0: not recorded
  std::vector<TensorId> inputs;         ///< its inputs
  std::vector<RecordedTensor> outputs;  ///< its outputs; empty if it threw
  std::string_view error;               ///< the message of the exception that it threw; empty: none

  /// The location of the caller: "model.cpp:31"; "unknown place" if it is not known.
  std::string location() const;
};

/// The norms of one parameter at one step of an optimiser.
struct RecordedUpdate {
  std::int64_t step = 0;       ///< the index of the step, from 0
  std::string_view parameter;  ///< the name of the parameter
  double weight_norm = 0;      ///< the Euclidean norm of its elements before the step; NaN if one is NaN
  double gradient_norm = 0;    ///< the norm of its gradient; NaN if an element is NaN
  double update_norm = 0;      ///< the norm of the change; NaN if an element is NaN
};

/// A recorded run in memory: read from a file of a `Recording`, or built op by op.
class RecordedRun {
 public:
  /// An empty run.
  RecordedRun();
  /// Takes over a run.
  RecordedRun(RecordedRun&&) noexcept;
  /// Takes over a run, and releases what this one held.
  RecordedRun& operator=(RecordedRun&&) noexcept;
  /// Releases ops and texts.
  ~RecordedRun();
  /// Reads the file of a recording, also one whose process was killed or still runs.
  /// Throws: FileError if the file cannot be read, or is no recording.
  static RecordedRun read(const std::string& file, Location where = Location::here());

  /// All ops, by ascending ids. Ids have gaps where the bound on bytes has dropped ops.
  const std::deque<RecordedOp>& ops() const;
  /// The op with the given id; null if it is not there.
  const RecordedOp* find(std::uint64_t id) const;
  /// A tensor; null if it is not there.
  const RecordedTensor* tensor(TensorId id) const;
  /// The ids of the ops that have a tensor as an input, ascending.
  const std::vector<std::uint64_t>& consumers(TensorId id) const;
  /// The gradients of an op's outputs, those of the first backward pass if there were several; null if not recorded.
  const RecordedOp* gradient_of(std::uint64_t op) const;
  /// The norms of parameters, in the order of steps.
  const std::vector<RecordedUpdate>& updates() const;
  /// The command line of the recorded program.
  std::string_view program() const;
  /// True if the recording was closed; false if its process was killed, or still runs.
  bool is_complete() const;
  /// The number of ops that the bound on bytes has dropped.
  std::uint64_t dropped() const;
  /// The text of a source file, by its name in the ops; empty if the recording does not hold it.
  std::string_view source(std::string_view file) const;

  /// Keeps a text as long as this run lives, once for equal ones, as `io::printable` writes it.
  std::string_view intern(std::string_view text);
  /// Adds an op, whose texts must be interned. Ops may come in any order of ids; adding one with a smaller id than the
  /// last invalidates references to ops, as in `std::deque::insert`.
  const RecordedOp& add(RecordedOp op);
  /// Adds the norms of a parameter, whose name must be interned.
  void add_update(RecordedUpdate update);
  /// Names a tensor; does nothing if it is not there.
  void rename(TensorId id, std::string_view name);
  /// Keeps the text of a source file, whose name must be interned.
  void add_source(std::string_view file, std::string_view text);
  /// Drops the oldest ops until at most `count` are left.
  void keep_last(std::size_t count);
  /// Drops the oldest norms of parameters until at most `count` are left. Returns how many were dropped.
  std::size_t keep_last_updates(std::size_t count);
  /// Sets what a file says of the whole run.
  void describe(std::string_view program, bool is_complete, std::uint64_t dropped);

 private:
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

}  // namespace reel::debug
