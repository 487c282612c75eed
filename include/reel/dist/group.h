#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <reel/tensor.h>

namespace reel::dist {

/// How the elements of several ranks are combined.
enum class Reduction : std::uint8_t { sum, min, max };

/// A reduction that runs while its caller computes.
class PendingReduction {
 public:
  /// No reduction.
  PendingReduction() = default;
  /// Lets the reduction progress without waiting, and returns true when it is complete, or if there is none.
  bool test();
  /// Waits until the reduction is complete. Throws: what the transfer throws.
  void wait();

 private:
  friend class Group;
  struct State;
  std::shared_ptr<State> state_;
};

/// The rows that a rank has received from all ranks.
struct Exchanged {
  Tensor rows;                       ///< (Σ counts, …), those of rank 0 first
  std::vector<std::int64_t> counts;  ///< the number of rows from each rank
};

/// The processes that run one program together, each of which is a rank, numbered from 0. Without `mpirun` it is this
/// process alone, and nothing of MPI is started.
///
/// The functions that exchange tensors are collective: all ranks call them in one order, each from the thread
/// that made its first Group. A tensor of a GPU is exchanged over NCCL where reel was built with it, and through the
/// CPU's memory elsewhere. Copies are handles of one group.
///
/// If the last handle is destroyed while an exception propagates, the process ends all ranks, since the others would
/// wait for it; `dist::run` also says why.
class Group {
 public:
  /// The group of all processes that `mpirun` has started together. The first one initialises MPI, unless the program
  /// has done so; MPI is finalised when the program exits.
  /// Throws: Error if MPI cannot be initialised.
  explicit Group(Location where = Location::here());

  /// The number of this process, in [0, size()).
  int rank() const;
  /// The number of processes.
  int size() const;

  /// Waits until every rank has called it.
  void barrier(Location where = Location::here()) const;
  /// Overwrites x with its elements on the rank `root`; shape and dtype have to be equal on all ranks.
  /// Throws: Error for a rank that does not exist, or an undefined tensor; ShapeError unless contiguous.
  void broadcast(Tensor& x, int root = 0, Location where = Location::here()) const;
  /// Replaces the text by that of the rank `root`. Throws: Error for a rank that does not exist.
  void broadcast(std::string& text, int root = 0, Location where = Location::here()) const;
  /// Overwrites x with the sums, minima or maxima of the elements over all ranks, which are equal to the bit on all of
  /// them; halves are combined in f32. Default: sums.
  /// Throws: ShapeError unless contiguous; DTypeError for bool; Error for an undefined tensor.
  void all_reduce(Tensor& x, Reduction reduction = Reduction::sum, Location where = Location::here()) const;
  /// Starts to overwrite x with the sums of the elements over all ranks; x must not be used until the result is waited
  /// for. Several may run; each rank starts them in one order.
  /// Throws: ShapeError unless contiguous; DTypeError unless f32, f64, i32 or i64; Error for an undefined tensor.
  PendingReduction start_all_reduce(Tensor& x, Location where = Location::here()) const;
  /// A buffer (elements) of zeros for sums over the ranks, made by all of them at once: where they are on one machine, they
  /// all see its memory, so that `start_all_reduce` of the whole buffer passes no messages. Elsewhere, and where the
  /// system refuses such memory, it is an ordinary tensor. `dtype`: f32 (default) or f64.
  /// Throws: DTypeError for another dtype; ShapeError for a negative number; MemoryError.
  Tensor reduction_buffer(std::int64_t elements, DType dtype = DType::f32, Location where = Location::here()) const;
  /// Concatenates the rows of all ranks, those of rank 0 first: x (n, …) → (Σ n, …), where n may differ and be 0.
  /// Throws: ShapeError for a scalar; Error for an undefined tensor.
  Tensor all_gatherv(const Arg& x) const;
  /// Sends each rank its rows of x (Σ counts, …): the first counts[0] to rank 0, the next counts[1] to rank 1.
  /// Throws: ShapeError for a scalar, and unless the counts, one for each rank and 0 or more, sum up to the rows; Error
  /// for an undefined tensor.
  Exchanged alltoallv(const Arg& x, const std::vector<std::int64_t>& counts) const;

  /// Prints "rank 1 of 2: " and the sentence to stderr, and ends all ranks with an exit status of `status`.
  [[noreturn]] void abort(const std::string& sentence, int status = 1) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace reel::dist
