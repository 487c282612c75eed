#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <reel/detail/immovable.h>
#include <reel/dist/group.h>
#include <reel/tensor.h>

namespace reel {
class Tape;
}  // namespace reel

namespace reel::nn {
class Module;
}  // namespace reel::nn

namespace reel::optim {
class Optimiser;
}  // namespace reel::optim

namespace reel::dist {

/// Options of DataParallel.
struct DataParallelOptions {
  /// The size of a bucket, whose gradients are reduced together, in bytes, at least 1; a larger gradient has a bucket of
  /// its own. Default 4 MiB.
  std::size_t bucket_bytes = std::size_t{4} << 20;
  /// Parameters whose gradients come by rows, such as the table of an Embedding with `row_gradient`: only rows that a
  /// rank has are exchanged. Default: none.
  std::vector<Tensor> by_rows = {};
  /// Whether each step overwrites the model's buffers, such as the statistics of a BatchNorm, with those of rank 0.
  /// Default true.
  bool broadcast_buffers = true;
};

/// A step of all ranks, as each of them sees it; true if there was one.
struct Step {
  double loss = 0;          ///< the mean of the losses over what all ranks have counted
  double count = 0;         ///< the sum of the counts
  std::int64_t active = 0;  ///< the number of ranks that had data

  /// True if any rank had data, so that there are gradients.
  explicit operator bool() const { return active > 0; }
};

/// Trains replicas of a model on several ranks, each with data of its own, as one process would train it on all data:
///
///     dist::Group group;
///     dist::DataParallel parallel(group, model, adam);
///     data::Loader loader(items, collate, {.batch_size = 32, .shard = group.rank(), .shards = group.size()});
///     for (const train::Batch& batch : loader) {
///       Tape tape;
///       if (loader.indices().empty()) {
///         parallel.join();  // the last batch had fewer items than there are ranks
///       } else {
///         parallel.backward(tape, cross_entropy(model(batch.x), batch.y), loader.indices().size());
///       }
///       optim::clip_grad_norm(adam.parameters(), 5);
///       adam.step();
///       adam.zero_grad();
///     }
///
/// After each step all ranks have gradients of equal bits, so that clipping is by the global norm, and replicas stay
/// equal to the bit. Gradients are grouped in buckets of one fixed order, the last parameter first, and a bucket is
/// reduced while the backward pass goes on. All ranks have to make equal calls of Group, in one order, between
/// two steps.
///
/// This thread's `default_generator()` becomes that of rank 0 on rank 0 and a stream of its own on each other rank, so
/// that dropout differs from rank to rank.
class DataParallel : detail::Immovable {
 public:
  /// Broadcasts parameters and buffers of the model from rank 0. The parameters that are reduced are those of the
  /// optimiser that are the model's, too, and not frozen at that time. Model and optimiser must outlive this object.
  /// Throws: Error if models differ from rank to rank in names, shapes or dtypes, and for options out of range.
  DataParallel(Group group, nn::Module& model, optim::Optimiser& optimiser, DataParallelOptions options = {},
               Location where = Location::here());
  ~DataParallel();

  /// Differentiates the loss, the mean over `count` items such as tokens, and adds to each parameter's `grad()` the
  /// gradient of the mean over all ranks' items:
  ///   g = Σ_r count_r ∂loss_r/∂w / Σ_r count_r.
  /// A parameter that no rank's loss depends on has no gradient. To be called by all ranks, but those that call `join`.
  /// Throws: Error unless count > 0; what `Tape::backward` throws. An exception ends the exchange: let it end the rank.
  Step backward(Tape& tape, const Arg& loss, double count);
  /// Takes part in a step without data: as `backward` with a count and gradients of 0. A rank with less data than
  /// others calls it, instead of `backward`, until it returns a Step that is false, which all ranks see at once:
  ///
  ///     while (parallel.join()) {
  ///       adam.step();
  ///       adam.zero_grad();
  ///     }
  Step join(Location where = Location::here());

  /// Overwrites parameters and buffers with those of rank 0; only needed after they were changed by hand.
  void broadcast_model(Location where = Location::here());
  /// Gives the ranks different streams of random numbers again after `default_generator()` was restored, as resuming
  /// from a checkpoint does: rank 0 keeps its stream. Each step does so, too.
  void separate_generators();
  /// Checks that parameters and buffers are equal to the bit on all ranks. Throws: Error that names the first that is not.
  void check_replicas(Location where = Location::here()) const;

  /// The bytes of each bucket, in the order in which they are reduced.
  std::vector<std::size_t> bucket_sizes() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace reel::dist
