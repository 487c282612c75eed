#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <reel/dist/group.h>
#include <reel/tensor.h>

namespace reel::detail {

/// Gradients of several parameters that are reduced together: views of one buffer. Behind the gradients the buffer has
/// a 1 for each parameter that this rank has a gradient of, so that their sums say which ones no rank has.
struct Bucket {
  Tensor buffer;                        ///< f32, or f64 for parameters of f64
  std::vector<std::size_t> parameters;  ///< their indices
  std::vector<Tensor> gradients;        ///< the views, in the shapes of the parameters
  Tensor present;                       ///< (parameters)
  std::vector<bool> filled;
  std::size_t missing = 0;  ///< the parameters that are not filled yet
  dist::PendingReduction pending;
};

/// Reduces the gradients of parameters over the ranks, bucket by bucket, in one order, whatever the order in which they
/// are computed.
class GradientBuckets {
 public:
  /// The last parameter comes first, since a backward pass reaches it first.
  GradientBuckets(dist::Group group, const std::vector<Tensor>& parameters, std::size_t bucket_bytes);

  /// Begins a step, of a call at that line: no bucket has a gradient.
  void begin(Location where);
  /// Puts the gradient of a parameter, and starts to reduce what is complete.
  void put(std::size_t parameter, const Tensor& gradient);
  /// Starts to reduce all that is left, with zeros where there is no gradient, and waits for all sums.
  void finish();
  /// After `finish`: calls f(parameter, sum) for each parameter that some rank has a gradient of.
  template <class F>
  void for_each_sum(F f) {
    for (Bucket& bucket : buckets_) {
      std::vector<double> present = to_doubles(bucket.present);
      for (std::size_t i = 0; i < bucket.parameters.size(); ++i)
        if (present[i] > 0) f(bucket.parameters[i], bucket.gradients[i]);
    }
  }
  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  static std::vector<double> to_doubles(const Tensor& x);
  void close(const std::vector<Tensor>& parameters, std::vector<std::size_t> members);
  void start(Bucket& bucket);

  dist::Group group_;
  std::vector<Bucket> buckets_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;  // of each parameter: its bucket, and its place there
  std::size_t started_ = 0;
  Location where_;
};

}  // namespace reel::detail
