#include "sharded_files.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>

#include <reel/io/safetensors.h>
#include <reel/io/tensor_file.h>
#include <reel/no_record.h>
#include <reel/ops.h>

#include "../core/fail.h"
#include "../core/printable.h"
#include "../io/safetensors/own_file.h"

namespace reel::detail {

namespace {

// The contents of PREFIX.safetensors: the index of the latest save, and the table that was saved.
struct Index {
  std::int64_t save = 0, ranks = 0, count = 0, seed = 0;

  Tensor to_tensor() const { return tensor({save, ranks, count, seed}); }
  static Index of(const Tensor& numbers) {
    std::vector<std::int64_t> all = numbers.to_vector<std::int64_t>();
    return {all[0], all[1], all[2], all[3]};
  }
};

std::string index_path(const std::string& prefix) { return prefix + ".safetensors"; }

std::string share_path(const std::string& prefix, std::int64_t save, std::int64_t rank, std::int64_t ranks) {
  return fmt::format("{}.{}.{}-of-{}.safetensors", prefix, save, rank, ranks);
}

// Throws: io::FileError.
Index read_index(const std::string& prefix, Location where) {
  io::Contents file = io::load(index_path(prefix), where);
  const Tensor* numbers = file.find("index");
  bool is_index = numbers && numbers->shape() == Shape{4} && numbers->dtype() == DType::i64;
  Index index = is_index ? Index::of(*numbers) : Index();
  constexpr std::int64_t most_ranks = 1 << 20;  // more than any job has
  if (index.save < 1 || index.save == std::numeric_limits<std::int64_t>::max() || index.ranks < 1 ||
      index.ranks > most_ranks)
    fail<io::FileError>("ShardedEmbedding::load", where, "'{}' is not the index of a sharded table",
                        printable(index_path(prefix)));
  return index;
}

// For each rank that has saved: the places of its rows that this rank has now, and their places here.
struct Moves {
  std::vector<std::int64_t> from, to;
};

std::vector<Moves> moves_to(std::int64_t rank, const RowShares& shares, std::int64_t saved_ranks) {
  std::vector<Moves> moves(static_cast<std::size_t>(saved_ranks));
  for (std::int64_t place = 0; place < shares.size_of(rank); ++place) {
    std::int64_t position = rank + shares.ranks() * place;
    Moves& of_rank = moves[static_cast<std::size_t>(position % saved_ranks)];
    of_rank.from.push_back(position / saved_ranks);
    of_rank.to.push_back(place);
  }
  return moves;
}

}  // namespace

void save_shares(const dist::Group& group, const RowShares& shares, const std::string& prefix,
                 const std::vector<NamedTensor>& tensors, Location where) {
  NoRecord pause;
  Index before;
  if (group.rank() == 0 && std::filesystem::exists(index_path(prefix))) before = read_index(prefix, where);
  Tensor numbers = before.to_tensor();
  group.broadcast(numbers, 0, where);
  before = Index::of(numbers);
  Index now{before.save + 1, group.size(), shares.count(), static_cast<std::int64_t>(shares.seed())};
  io::save(share_path(prefix, now.save, group.rank(), now.ranks), 1, tensors, {}, where);
  group.barrier(where);
  if (group.rank() == 0) {
    io::save(index_path(prefix), 1, std::vector<NamedTensor>{{"index", now.to_tensor()}}, {}, where);
    std::error_code ignored;  // what cannot be removed only takes room
    for (std::int64_t rank = 0; rank < before.ranks; ++rank)
      std::filesystem::remove(share_path(prefix, before.save, rank, before.ranks), ignored);
  }
  group.barrier(where);
}

std::vector<NamedTensor> load_shares(const dist::Group& group, const RowShares& shares, const std::string& prefix,
                                     Location where) {
  Index index = read_index(prefix, where);
  if (index.count != shares.count() || index.seed != static_cast<std::int64_t>(shares.seed()))
    fail<Error>("ShardedEmbedding::load", where, "'{}' is of a table of {} rows with seed {}, not of {} with seed {}",
                printable(prefix), index.count, index.seed, shares.count(), shares.seed());
  std::vector<Moves> moves = moves_to(group.rank(), shares, index.ranks);
  RowShares saved(shares.count(), index.ranks, shares.seed());
  std::vector<NamedTensor> loaded;
  for (std::int64_t rank = 0; rank < index.ranks; ++rank) {
    std::string path = share_path(prefix, index.save, rank, index.ranks);
    io::TensorFile file = io::open(path, where);
    const Moves& of_rank = moves[static_cast<std::size_t>(rank)];
    for (const std::string& name : file.names()) {
      Shape shape = file.shape(name);
      if (shape.rank() == 0 || shape[0] != saved.size_of(rank))
        fail<io::FileError>("ShardedEmbedding::load", where, "'{}' in '{}' is {}, and should have {} rows", name,
                            printable(path), to_string(shape), saved.size_of(rank));
      shape[0] = shares.size_of(group.rank());
      auto found = std::ranges::find(loaded, name, &NamedTensor::name);
      if (found == loaded.end()) {
        loaded.push_back({name, zeros(shape, {.dtype = file.dtype(name), .device = cpu})});
        found = loaded.end() - 1;
      }
      if (found->tensor.shape() != shape || found->tensor.dtype() != file.dtype(name))
        fail<io::FileError>("ShardedEmbedding::load", where, "'{}' in '{}' differs from that of other ranks", name,
                            printable(path));
      if (!of_rank.to.empty())
        found->tensor =
            index_copy(found->tensor, 0, tensor(of_rank.to), index_select(file[name], 0, tensor(of_rank.from)));
    }
  }
  group.barrier(where);
  return loaded;
}

}  // namespace reel::detail
