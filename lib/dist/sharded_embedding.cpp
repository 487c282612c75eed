#include <reel/dist/sharded_embedding.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include <reel/no_record.h>
#include <reel/ops.h>
#include <reel/random.h>

#include "../autograd/row_gradient.h"
#include "../core/fail.h"
#include "../core/storage.h"
#include "../ops/if_needed.h"
#include "row_shares.h"
#include "sharded_files.h"

namespace reel::dist {

using namespace detail;

namespace {

// A look-up whose gradients have not been sent back.
struct Lookup {
  Tensor received;                   // a parameter: the rows that this rank asked for, by owner
  std::vector<std::int64_t> counts;  // how many of each owner
  Tensor sent;                       // the rows of the shard that other ranks asked for
};

// Different rows of one look-up, those of rank 0 first, and for each index which of them it names.
struct Request {
  std::vector<std::int64_t> places, positions, counts;
};

Request request_of(const std::vector<std::int64_t>& indices, const RowShares& shares) {
  std::vector<std::pair<std::int64_t, std::int64_t>> wanted;
  for (std::int64_t row : indices) wanted.emplace_back(shares.owner(row), shares.place(row));
  std::vector<std::pair<std::int64_t, std::int64_t>> different = wanted;
  std::ranges::sort(different);
  different.erase(std::ranges::unique(different).begin(), different.end());
  Request request;
  request.counts.resize(static_cast<std::size_t>(shares.ranks()));
  for (const auto& [owner, place] : different) {
    ++request.counts[static_cast<std::size_t>(owner)];
    request.places.push_back(place);
  }
  for (const auto& one : wanted)
    request.positions.push_back(std::ranges::lower_bound(different, one) - different.begin());
  return request;
}

// Row i is that of a stream of its own, whatever rank it is on.
Tensor initial_rows(const RowShares& shares, std::int64_t rank, std::int64_t size,
                    const ShardedEmbeddingOptions& options) {
  std::vector<std::int64_t> rows = shares.rows_of(rank);
  Tensor values = zeros({std::ssize(rows), size}, {.dtype = options.dtype, .device = cpu});
  std::size_t row_bytes = static_cast<std::size_t>(size) * size_of(options.dtype);
  for (std::size_t place = 0; place < rows.size(); ++place) {
    Generator generator(derived_key(options.seed, static_cast<std::uint64_t>(rows[place]), 0));
    Tensor drawn = randn({size}, {.dtype = options.dtype, .generator = &generator});
    std::memcpy(static_cast<char*>(values.body().data) + place * row_bytes, drawn.body().data, row_bytes);
  }
  mul_(values, options.deviation);
  return values;
}

}  // namespace

struct ShardedEmbedding::Implementation {
  Group group;
  RowShares shares;
  std::int64_t size;
  ShardedEmbeddingOptions options;
  Tensor shard;
  std::vector<Lookup> lookups;
};

ShardedEmbedding::ShardedEmbedding(Group group, std::int64_t count, std::int64_t size, ShardedEmbeddingOptions options,
                                   Location where) {
  if (count < 1 || size < 1)
    fail<ShapeError>("dist::ShardedEmbedding", where, "a table ({}, {}) has no elements; both sizes must be positive",
                     count, size);
  if (options.dtype != DType::f32 && options.dtype != DType::f64)
    fail<DTypeError>("dist::ShardedEmbedding", where, "the table can be of f32 or f64, not {}", name_of(options.dtype));
  if (!(options.deviation >= 0))
    fail<Error>("dist::ShardedEmbedding", where, "the deviation is {}, but must be at least 0", options.deviation);
  NoRecord pause;
  DeviceGuard on_cpu(cpu);
  RowShares shares(count, group.size(), options.seed);
  Tensor shard = initial_rows(shares, group.rank(), size, options).requires_grad();
  implementation_.reset(new Implementation{std::move(group), shares, size, options, shard, {}});
}

ShardedEmbedding::~ShardedEmbedding() = default;

Tensor ShardedEmbedding::operator()(const Arg& indices) {
  Implementation& self = *implementation_;
  Location where = indices.location();
  const Tensor& given = tensor_of("ShardedEmbedding", indices);
  if (given.dtype() != DType::i32 && given.dtype() != DType::i64)
    fail<DTypeError>("ShardedEmbedding", where, "takes indices of i32 or i64, not {}", describe(given));
  Lookup lookup;
  Tensor positions;
  {
    NoRecord pause;
    std::vector<std::int64_t> all = to(to(given, cpu), DType::i64).to_vector<std::int64_t>();
    for (std::int64_t row : all)
      if (row < 0 || row >= count())
        fail<IndexError>("ShardedEmbedding", where, "index {} is out of range for a table of {} rows", row, count());
    Request request = request_of(all, self.shares);
    Exchanged asked = self.group.alltoallv({tensor(request.places), where}, request.counts);
    lookup.sent = asked.rows;
    Exchanged answered = self.group.alltoallv({index_select(self.shard, 0, asked.rows), where}, asked.counts);
    lookup.received = answered.rows;
    lookup.counts = std::move(request.counts);
    positions = tensor(request.positions, given.shape());
  }
  if (!is_recording()) return embedding(lookup.received, positions);
  lookup.received.requires_grad();
  self.lookups.push_back(lookup);
  return embedding({lookup.received, where}, positions);
}

void ShardedEmbedding::reduce_gradients(double count, Location where) {
  Implementation& self = *implementation_;
  if (!(count > 0)) fail<Error>("reduce_gradients", where, "the count is {}, but must be more than 0", count);
  NoRecord pause;
  std::vector<Tensor> rows, values;
  for (Lookup& lookup : std::exchange(self.lookups, {})) {
    Tensor own = lookup.received.grad();
    if (!own.defined()) own = zeros_like(lookup.received);
    rows.push_back(lookup.sent);
    values.push_back(self.group.alltoallv({own, where}, lookup.counts).rows);
  }
  if (rows.empty()) return;
  // A gradient of no rows still is a step of the optimiser, which other ranks make, too.
  Tensor all = concat(rows), scaled = concat(values) / count;
  RowGradient sum{all, scaled};
  if (all.numel() > 0) sum = combined(all, scaled, self.shard.size(0));
  Tensor shard = self.shard;
  if (RowGradient before = shard.row_grad(); before.defined()) sum = combined(before, sum, shard.size(0));
  std::lock_guard lock(gradient_mutex());
  std::swap(shard.body().leaf->row_gradient, sum);
}

const Tensor& ShardedEmbedding::shard() const { return implementation_->shard; }
std::int64_t ShardedEmbedding::count() const { return implementation_->shares.count(); }

Tensor ShardedEmbedding::rows() const {
  const Implementation& self = *implementation_;
  return tensor(self.shares.rows_of(self.group.rank()));
}

void ShardedEmbedding::save(const std::string& prefix, std::span<const NamedTensor> beside, Location where) const {
  const Implementation& self = *implementation_;
  std::vector<NamedTensor> tensors{{"table", self.shard}};
  for (const NamedTensor& one : beside) {
    if (one.tensor.rank() == 0 || one.tensor.size(0) != self.shard.size(0) || one.name == "table")
      fail<ShapeError>("ShardedEmbedding::save", where, "'{}' {} has no row for each of the {} of this rank", one.name,
                       describe(one.tensor), self.shard.size(0));
    tensors.push_back(one);
  }
  save_shares(self.group, self.shares, prefix, tensors, where);
}

std::vector<NamedTensor> ShardedEmbedding::load(const std::string& prefix, Location where) {
  Implementation& self = *implementation_;
  NoRecord pause;
  std::vector<NamedTensor> tensors = load_shares(self.group, self.shares, prefix, where);
  auto table = std::ranges::find(tensors, "table", &NamedTensor::name);
  if (table == tensors.end() || table->tensor.shape() != self.shard.shape() ||
      table->tensor.dtype() != self.shard.dtype())
    fail<Error>("ShardedEmbedding::load", where, "'{}' has no table of {}", prefix, describe(self.shard));
  copy_({self.shard, where}, table->tensor);
  tensors.erase(table);
  return tensors;
}

}  // namespace reel::dist
