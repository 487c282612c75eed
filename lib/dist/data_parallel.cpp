#include <reel/dist/data_parallel.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include <reel/nn/module.h>
#include <reel/ops.h>
#include <reel/optim/optimiser.h>
#include <reel/random.h>
#include <reel/tape.h>

#include "../autograd/row_gradient.h"
#include "../core/fail.h"
#include "../core/storage.h"
#include "../data/permutation.h"
#include "../ops/if_needed.h"
#include "buckets.h"
#include "signals.h"

namespace reel::dist {

using namespace detail;

namespace {

// FNV-1a, which tells models and replicas apart; equality of all ranks' values is what matters.
class Fingerprint {
 public:
  void add(const void* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      value_ = (value_ ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3ULL;
  }
  void add(const std::string& text) { add(text.data(), text.size() + 1); }
  std::int64_t value() const { return static_cast<std::int64_t>(value_); }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

bool contains(const std::vector<Tensor>& all, const Tensor& one) {
  return std::ranges::any_of(all, [&](const Tensor& other) { return other.is(one); });
}

std::vector<NamedTensor> members_of(const nn::Module& model) {
  std::vector<NamedTensor> all = model.named_parameters();
  for (NamedTensor& buffer : model.named_buffers()) all.push_back(std::move(buffer));
  std::erase_if(all, [](const NamedTensor& one) { return !one.tensor.defined(); });
  return all;
}

// For each number, true if it is equal on all ranks.
std::vector<bool> equal_everywhere(const Group& group, const std::vector<std::int64_t>& values) {
  Tensor least = tensor(values), most = tensor(values);
  group.all_reduce(least, Reduction::min);
  group.all_reduce(most, Reduction::max);
  std::vector<std::int64_t> low = least.to_vector<std::int64_t>(), high = most.to_vector<std::int64_t>();
  std::vector<bool> equal;
  for (std::size_t i = 0; i < low.size(); ++i) equal.push_back(low[i] == high[i]);
  return equal;
}

// The data that ranks exchange at the beginning of a step, in one sum.
struct Header {
  double active = 0, count = 0, loss = 0;
  std::array<double, 3> signals{};

  Tensor to_tensor() const { return tensor({active, count, loss, signals[0], signals[1], signals[2]}); }
  static Header of(const Tensor& sums) {
    std::vector<double> all = sums.to_vector<double>();
    return {all[0], all[1], all[2], {all[3], all[4], all[5]}};
  }
};

LeafGradient take_gradient(const Tensor& parameter) {
  LeafGradient taken;
  std::lock_guard lock(gradient_mutex());
  std::swap(taken, static_cast<LeafGradient&>(*parameter.body().leaf));
  return taken;
}

void put_gradient(const Tensor& parameter, LeafGradient gradient) {
  std::lock_guard lock(gradient_mutex());
  std::swap(gradient, static_cast<LeafGradient&>(*parameter.body().leaf));
}

LeafGradient sum_of(const Tensor& parameter, const LeafGradient& a, LeafGradient b) {
  if (!a.gradient.defined() && !a.row_gradient.defined()) return b;
  if (a.row_gradient.defined() && b.row_gradient.defined())
    return {{}, combined(a.row_gradient, b.row_gradient, parameter.size(0))};
  auto full = [&](const LeafGradient& one) {
    return one.row_gradient.defined() ? dense(one.row_gradient, parameter.shape()) : one.gradient;
  };
  return {full(a) + full(b), {}};
}

}  // namespace

struct DataParallel::Implementation {
  Implementation(Group group, nn::Module& model, std::vector<Tensor> dense, std::vector<Tensor> tables,
                 const DataParallelOptions& options)
      : group(group),
        model(model),
        parameters(std::move(dense)),
        tables(std::move(tables)),
        buckets(group, parameters, options.bucket_bytes),
        broadcasts_buffers(options.broadcast_buffers) {}

  void begin(const Header& own, Location where);
  void restore();
  Step finish();
  void reduce_rows(double factor);
  void put_sums(double factor);
  void agree_on_signals(const Header& all);

  Group group;
  nn::Module& model;
  std::vector<Tensor> parameters, tables;
  GradientBuckets buckets;
  bool broadcasts_buffers;
  std::uint64_t own_seed = 0;
  Tensor header;
  PendingReduction pending_header;
  std::vector<LeafGradient> before;  // what earlier backwards have accumulated: of parameters, then of tables
  // The number of the step whose gradients are reduced, or 0; shared with hooks, which may outlive this object.
  std::shared_ptr<std::int64_t> running = std::make_shared<std::int64_t>(0);
  std::int64_t steps = 0;
};

void DataParallel::Implementation::begin(const Header& own, Location where) {
  Header sent = own;
  std::array<bool, 3> held = held_signals();
  for (std::size_t i = 0; i < held.size(); ++i) sent.signals[i] = held[i];
  header = sent.to_tensor();
  pending_header = group.start_all_reduce(header, where);
  before.clear();
  for (const std::vector<Tensor>* all : {&parameters, &tables})
    for (const Tensor& parameter : *all) before.push_back(take_gradient(parameter));
  buckets.begin(where);
}

// Puts the gradients back that were there before the step.
void DataParallel::Implementation::restore() {
  for (std::size_t i = 0; i < before.size(); ++i)
    put_gradient(i < parameters.size() ? parameters[i] : tables[i - parameters.size()], std::move(before[i]));
  before.clear();
}

// Gradients have to be in place before a signal is handled.
Step DataParallel::Implementation::finish() {
  buckets.finish();
  pending_header.wait();
  Header all = Header::of(header);
  put_sums(1 / all.count);
  reduce_rows(1 / all.count);
  before.clear();
  if (broadcasts_buffers)
    for (NamedTensor& buffer : model.named_buffers())
      if (buffer.tensor.defined()) group.broadcast(buffer.tensor);
  agree_on_signals(all);
  return {all.loss / all.count, all.count, static_cast<std::int64_t>(all.active)};
}

void DataParallel::Implementation::put_sums(double factor) {
  std::vector<LeafGradient> results(parameters.size());
  buckets.for_each_sum([&](std::size_t i, const Tensor& sum) {
    results[i].gradient = to_if_needed(sum * factor, parameters[i].dtype());
  });
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    bool any = results[i].gradient.defined();
    put_gradient(parameters[i], any ? sum_of(parameters[i], before[i], std::move(results[i])) : std::move(before[i]));
  }
}

void DataParallel::Implementation::reduce_rows(double factor) {
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const Tensor& table = tables[i];
    LeafGradient own = take_gradient(table);
    Shape none = table.shape();
    none[0] = 0;
    RowGradient rows = own.row_gradient;
    if (own.gradient.defined()) rows = {arange(table.size(0)), own.gradient};
    if (!rows.defined()) rows = {zeros({0}, {.dtype = DType::i64}), zeros(none, {.dtype = table.dtype()})};
    Tensor indices = group.all_gatherv(to_if_needed(rows.rows, DType::i64)), values = group.all_gatherv(rows.values);
    LeafGradient& earlier = before[parameters.size() + i];
    LeafGradient sum;
    if (indices.numel() > 0) sum.row_gradient = combined(indices, values * factor, table.size(0));
    bool any = sum.row_gradient.defined();
    put_gradient(table, any ? sum_of(table, earlier, std::move(sum)) : std::move(earlier));
  }
}

void DataParallel::Implementation::agree_on_signals(const Header& all) {
  for (std::size_t i = 0; i < all.signals.size(); ++i)
    if (all.signals[i] > 0) {
      deliver_held_signal(end_signals()[i]);
      return;
    }
}

DataParallel::DataParallel(Group group, nn::Module& model, optim::Optimiser& optimiser, DataParallelOptions options,
                           Location where) {
  CallerScope caller(where);
  if (options.bucket_bytes == 0) fail<Error>("dist::DataParallel", where, "bucket_bytes is 0, but must be at least 1");
  Fingerprint form;
  for (const NamedTensor& one : members_of(model)) {
    bool frozen = !one.tensor.is_parameter();
    form.add(one.name + to_string(one.tensor.shape()) + std::string(name_of(one.tensor.dtype())) +
             (frozen ? "f" : "t"));
  }
  std::vector<Tensor> dense, tables, own = model.parameters();
  for (const Tensor& parameter : optimiser.parameters()) {
    if (!contains(own, parameter) || !parameter.is_parameter()) continue;
    bool by_rows = contains(options.by_rows, parameter);
    form.add(by_rows ? "r" : "d");
    (by_rows ? tables : dense).push_back(parameter);
  }
  for (const Tensor& table : options.by_rows)
    if (!contains(tables, table))
      fail<Error>("dist::DataParallel", where, "{} of by_rows is not a parameter of both the model and the optimiser",
                  describe(table));
  if (!equal_everywhere(group, {form.value()})[0])
    fail<Error>("dist::DataParallel", where,
                "the models of the {} ranks have different parameters; build all of them alike, from equal options",
                group.size());
  implementation_ = std::make_unique<Implementation>(group, model, std::move(dense), std::move(tables), options);
  broadcast_model(where);
  Tensor stream = tensor(
      {static_cast<std::int64_t>(default_generator().seed()), static_cast<std::int64_t>(default_generator().calls())});
  group.broadcast(stream, 0, where);
  std::vector<std::int64_t> numbers = stream.to_vector<std::int64_t>();
  default_generator() = Generator(static_cast<std::uint64_t>(numbers[0]));
  default_generator().set_calls(static_cast<std::uint64_t>(numbers[1]));
  implementation_->own_seed = default_generator().seed() + 1;  // any other
  separate_generators();
}

DataParallel::~DataParallel() = default;

void DataParallel::broadcast_model(Location where) {
  NoRecord pause;
  for (NamedTensor& one : members_of(implementation_->model)) implementation_->group.broadcast(one.tensor, 0, where);
}

void DataParallel::separate_generators() {
  Implementation& self = *implementation_;
  Generator& generator = default_generator();
  if (self.group.rank() == 0 || generator.seed() == self.own_seed) return;
  std::uint64_t calls = generator.calls();
  self.own_seed = derived_key(generator.seed(), static_cast<std::uint64_t>(self.group.rank()), 0x72616e6bULL);
  generator = Generator(self.own_seed);
  generator.set_calls(calls);
}

Step DataParallel::backward(Tape& tape, const Arg& loss, double count) {
  Implementation& self = *implementation_;
  Location where = loss.location();
  if (!(count > 0))
    fail<Error>("DataParallel::backward", where, "the count is {}; a rank without data calls join instead", count);
  separate_generators();
  self.begin({1, count, count * loss.item()}, where);
  std::int64_t step = *self.running = ++self.steps;
  for (std::size_t i = 0; i < self.parameters.size(); ++i)
    if (self.parameters[i].is_parameter())
      tape.hook({self.parameters[i], where}, [&self, i, step, running = self.running](const Tensor& gradient) {
        if (*running == step) self.buckets.put(i, gradient);
      });
  Tensor seed;
  {
    NoRecord pause;
    seed = full(loss.shape(), count, {.dtype = loss.dtype(), .device = loss.device()});
  }
  try {
    tape.backward(loss, {.seed = seed});
  } catch (...) {
    *self.running = 0;
    self.restore();
    throw;
  }
  *self.running = 0;
  NoRecord pause;
  CallerScope caller(where);
  return self.finish();
}

Step DataParallel::join(Location where) {
  Implementation& self = *implementation_;
  NoRecord pause;
  CallerScope caller(where);
  separate_generators();
  self.begin({}, where);
  self.pending_header.wait();
  Header all = Header::of(self.header);
  if (all.active > 0) return self.finish();
  self.restore();
  self.agree_on_signals(all);
  return {};
}

void DataParallel::check_replicas(Location where) const {
  NoRecord pause;
  CallerScope caller(where);
  std::vector<NamedTensor> members = members_of(implementation_->model);
  std::vector<std::int64_t> values;
  for (const NamedTensor& one : members) {
    Tensor packed = contiguous_if_needed(to(one.tensor, cpu));
    Fingerprint bits;
    bits.add(packed.body().data, static_cast<std::size_t>(packed.numel()) * size_of(packed.dtype()));
    values.push_back(bits.value());
  }
  std::vector<bool> equal = equal_everywhere(implementation_->group, values);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!equal[i])
      fail<Error>("DataParallel::check_replicas", where,
                  "'{}' {} differs from rank to rank; change it on all ranks alike, or call broadcast_model",
                  members[i].name, describe(members[i].tensor));
}

std::vector<std::size_t> DataParallel::bucket_sizes() const {
  std::vector<std::size_t> sizes;
  for (const Bucket& bucket : implementation_->buckets.buckets())
    sizes.push_back(static_cast<std::size_t>(bucket.buffer.numel()) * size_of(bucket.buffer.dtype()));
  return sizes;
}

}  // namespace reel::dist
