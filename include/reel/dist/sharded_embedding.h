#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <reel/detail/immovable.h>
#include <reel/dist/group.h>
#include <reel/named_tensor.h>
#include <reel/tensor.h>

namespace reel::dist {

/// Options of ShardedEmbedding.
struct ShardedEmbeddingOptions {
  DType dtype = DType::f32;  ///< of the table, f32 or f64; default f32
  /// The standard deviation of the initial values, which are normal with mean 0, at least 0. Default 1.
  double deviation = 1;
  /// The seed of the initial values and of the ranks to which rows belong; equal on all ranks. Default 0.
  std::uint64_t seed = 0;
};

/// An embedding table whose rows are divided among the ranks, for tables that one process cannot hold: row i belongs to
/// rank p(i) mod n, where p is a pseudorandom permutation of the rows, so that each rank has a share of 1 / n of them,
/// rounded, whatever rows are frequent. Initial values do not depend on the number of ranks.
///
///     dist::ShardedEmbedding words(group, 100'000, 64);
///     optim::Adagrad adagrad({words.shard()});
///     Tape tape;
///     Tensor x = words(ids);  // on each rank for ids of its own
///     dist::Step all = parallel.backward(tape, loss(x), ids.numel());
///     words.reduce_gradients(all.count);
///     adagrad.step();
///     adagrad.zero_grad();
///
/// An optimiser that takes gradients by rows, SGD, Adagrad or Adam, updates the shard, and keeps its state of these rows
/// alone. Calls are collective: each rank looks rows up as often as the others, without data by indices (0).
class ShardedEmbedding : detail::Immovable {
 public:
  /// A table (count, size). Throws: ShapeError unless both sizes are positive; DTypeError for another dtype; Error for a
  /// deviation out of range.
  ShardedEmbedding(Group group, std::int64_t count, std::int64_t size, ShardedEmbeddingOptions options = {},
                   Location where = Location::here());
  ~ShardedEmbedding();

  /// The rows of symbols: indices (…) of i32 or i64 in [0, count) → (…, size). Each different row is sent once.
  /// Throws: IndexError for an index out of range; DTypeError for other indices.
  Tensor operator()(const Arg& indices);
  /// Sends the gradients of what was looked up since the last call to the ranks of the rows, and adds them, summed over
  /// all ranks and divided by `count`, to `shard().row_grad()`. After `DataParallel::backward`, `count` is `Step::count`;
  /// after `tape.backward` of a sum, 1 or the number of all ranks' items.
  /// Throws: Error unless count > 0.
  void reduce_gradients(double count, Location where = Location::here());

  /// The rows of this rank, a parameter: (rows of this rank, size).
  const Tensor& shard() const;
  /// The index in the table of each row of `shard()`: (rows of this rank), i64.
  Tensor rows() const;
  /// The number of rows of the whole table.
  std::int64_t count() const;

  /// Saves the table, and `beside` it other tensors with a row for each row of `shard()`, such as the state of an
  /// optimiser: a file of each rank, `PREFIX.3.0-of-2.safetensors` for rank 0 and the third save, and when all of these
  /// are complete PREFIX.safetensors, which names them. Older ones are then removed.
  /// Throws: ShapeError for a tensor of another number of rows; what `io::save` throws.
  void save(const std::string& prefix, std::span<const NamedTensor> beside = {},
            Location where = Location::here()) const;
  /// Loads what any number of ranks has saved, into the rows of this rank, and returns the rows of this rank of the
  /// tensors that were saved beside the table. A rank holds at most twice its own rows meanwhile.
  /// Throws: io::FileError; Error for a table of another size or seed.
  std::vector<NamedTensor> load(const std::string& prefix, Location where = Location::here());

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace reel::dist
