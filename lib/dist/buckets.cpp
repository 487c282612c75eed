#include "buckets.h"

#include <reel/no_record.h>
#include <reel/ops.h>

namespace reel::detail {

namespace {

DType dtype_of_sum(const Tensor& parameter) { return parameter.dtype() == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace

GradientBuckets::GradientBuckets(dist::Group group, const std::vector<Tensor>& parameters, std::size_t bucket_bytes)
    : group_(std::move(group)), places_(parameters.size()) {
  std::vector<std::size_t> members;
  std::size_t bytes = 0;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Tensor& parameter = parameters[i];
    std::size_t more = static_cast<std::size_t>(parameter.numel()) * size_of(dtype_of_sum(parameter));
    bool fits = members.empty() ||
                (bytes + more <= bucket_bytes && dtype_of_sum(parameters[members[0]]) == dtype_of_sum(parameter) &&
                 parameters[members[0]].device() == parameter.device());
    if (!fits) {
      close(parameters, std::move(members));
      members = {};
      bytes = 0;
    }
    members.push_back(i);
    bytes += more;
  }
  if (!members.empty()) close(parameters, std::move(members));
}

void GradientBuckets::close(const std::vector<Tensor>& parameters, std::vector<std::size_t> members) {
  std::int64_t elements = std::ssize(members);
  for (std::size_t member : members) elements += parameters[member].numel();
  const Tensor& first = parameters[members[0]];
  Bucket bucket;
  bucket.buffer = first.device() == cpu ? group_.reduction_buffer(elements, dtype_of_sum(first))
                                        : zeros({elements}, {.dtype = dtype_of_sum(first), .device = first.device()});
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Tensor& parameter = parameters[members[i]];
    std::int64_t end = begin + parameter.numel();
    bucket.gradients.push_back(reshape(slice(bucket.buffer, 0, begin, end), parameter.shape()));
    places_[members[i]] = {buckets_.size(), i};
    begin = end;
  }
  bucket.present = slice(bucket.buffer, 0, begin, elements);
  bucket.parameters = std::move(members);
  buckets_.push_back(std::move(bucket));
}

void GradientBuckets::begin(Location where) {
  started_ = 0;
  where_ = where;
  for (Bucket& bucket : buckets_) {
    bucket.pending.wait();
    bucket.filled.assign(bucket.parameters.size(), false);
    bucket.missing = bucket.parameters.size();
  }
}

void GradientBuckets::put(std::size_t parameter, const Tensor& gradient) {
  auto [at, i] = places_[parameter];
  Bucket& bucket = buckets_[at];
  if (bucket.filled[i]) return;
  NoRecord pause;
  copy_(bucket.gradients[i], gradient);
  bucket.filled[i] = true;
  --bucket.missing;
  while (started_ < buckets_.size() && buckets_[started_].missing == 0) start(buckets_[started_++]);
  // MPI moves data only while it is called.
  for (std::size_t running = 0; running < started_; ++running) buckets_[running].pending.test();
}

void GradientBuckets::start(Bucket& bucket) {
  std::vector<double> present;
  for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
    present.push_back(bucket.filled[i] ? 1 : 0);
    if (!bucket.filled[i]) fill_(bucket.gradients[i], 0);
  }
  copy_(bucket.present, to(tensor(present), bucket.present.dtype()));
  bucket.pending = group_.start_all_reduce(bucket.buffer, where_);
}

void GradientBuckets::finish() {
  NoRecord pause;
  while (started_ < buckets_.size()) start(buckets_[started_++]);
  for (Bucket& bucket : buckets_) bucket.pending.wait();
}

std::vector<double> GradientBuckets::to_doubles(const Tensor& x) {
  return to(to(x, cpu), DType::f64).to_vector<double>();
}

}  // namespace reel::detail
