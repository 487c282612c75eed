#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "catch.h"

// Compares a layer with libtorch's layer with equal weights.

namespace reel_test {

inline std::vector<double> doubles_of(const reel::Tensor& x) { return reel::to(x, reel::f64).to_vector<double>(); }

inline std::vector<double> doubles_of(const at::Tensor& x) {
  at::Tensor wide = x.detach().to(at::kDouble).contiguous();
  return {wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel()};
}

/// A copy, in f64.
inline at::Tensor theirs_of(const reel::Tensor& x) {
  reel::Shape shape = x.shape();
  return at::tensor(doubles_of(x), at::kDouble).reshape(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

/// A parameter of reel's, and the corresponding part of libtorch's: `count` rows from `start`.
struct ParameterPair {
  reel::nn::Parameter& ours;
  at::Tensor theirs;
  std::int64_t start, count;
  bool transposed;
  /// The first and the number of reel's elements that libtorch has; count 0: all.
  std::int64_t our_start = 0, our_count = 0;

  reel::Tensor part_of(const reel::Tensor& x) const {
    return our_count > 0 ? reel::slice(x, 0, our_start, our_start + our_count) : x;
  }
  at::Tensor in_our_form(const at::Tensor& x) const {
    at::Tensor rows = x.narrow(0, start, count);
    return transposed ? rows.t() : rows;
  }
};

/// Theirs is ours, (in, out), transposed: all of it, or `count` rows from `start`.
inline ParameterPair transposed(reel::nn::Parameter& ours, const at::Tensor& theirs, std::int64_t start = 0) {
  return {ours, theirs, start, ours.size(1), true};
}
/// A pair of equal elements.
inline ParameterPair same(reel::nn::Parameter& ours, const at::Tensor& theirs, std::int64_t start = 0) {
  return {ours, theirs, start, ours.size(0), false};
}

using OurLayer = std::function<std::vector<reel::Tensor>(const std::vector<reel::Tensor>& inputs)>;
using TheirLayer = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

/// Results, then gradients by inputs, then by parameters, of the sum of all results weighed by fixed random numbers.
using Compared = std::vector<std::vector<double>>;

inline Compared run_ours(const OurLayer& layer, const std::vector<ParameterPair>& pairs,
                         const std::vector<reel::Tensor>& inputs, const std::vector<reel::Tensor>& seeds) {
  reel::Tape tape;
  std::vector<reel::Tensor> sources;
  for (const reel::Tensor& input : inputs) tape.watch(sources.emplace_back(input));
  for (const ParameterPair& pair : pairs) sources.push_back(pair.ours);
  std::vector<reel::Tensor> results = layer(inputs);
  Compared compared;
  reel::Tensor total;
  for (std::size_t i = 0; i < results.size(); ++i) {
    compared.push_back(doubles_of(results[i]));
    reel::Tensor weighed = reel::sum(results[i] * reel::to(seeds[i], results[i].dtype()));
    total = total.defined() ? total + weighed : weighed;
  }
  std::vector<reel::Tensor> gradients = tape.gradient(total, sources);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    compared.push_back(doubles_of(i < inputs.size() ? gradients[i] : pairs[i - inputs.size()].part_of(gradients[i])));
  return compared;
}

inline Compared run_theirs(const TheirLayer& layer, const std::vector<ParameterPair>& pairs,
                           const std::vector<reel::Tensor>& inputs, const std::vector<reel::Tensor>& seeds,
                           at::ScalarType type) {
  std::vector<at::Tensor> given, sources;
  for (const reel::Tensor& input : inputs)
    sources.push_back(given.emplace_back(theirs_of(input).to(type).requires_grad_(true)));
  for (const ParameterPair& pair : pairs) sources.push_back(pair.theirs);
  std::vector<at::Tensor> results = layer(given);
  Compared compared;
  at::Tensor total = at::zeros({}, type);
  for (std::size_t i = 0; i < results.size(); ++i) {
    compared.push_back(doubles_of(results[i]));
    total = total + (results[i] * theirs_of(seeds[i]).to(type)).sum();
  }
  std::vector<at::Tensor> gradients = torch::autograd::grad({total}, sources, {}, true, false, true);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    compared.push_back(
        doubles_of(i < inputs.size() ? gradients[i] : pairs[i - inputs.size()].in_our_form(gradients[i])));
  return compared;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

/// In f64 both must agree but for rounding. In f32 our error, against f64, must be at most twice theirs, or as many ulps of
/// the largest element as there are roundings one after the other: 4 for each of some 16 ops.
inline void compare_layers(reel::nn::Module& ours, torch::nn::Module& theirs, const std::vector<ParameterPair>& pairs,
                           const std::vector<reel::Tensor>& inputs, const OurLayer& our_layer,
                           const TheirLayer& their_layer) {
  {
    at::NoGradGuard pause;
    for (const ParameterPair& pair : pairs) {
      at::Tensor values = theirs_of(pair.part_of(pair.ours));
      pair.in_our_form(pair.theirs).copy_(values);
    }
  }
  std::vector<reel::Tensor> wide, seeds;
  for (const reel::Tensor& input : inputs) wide.push_back(reel::to(input, reel::f64));
  for (const reel::Tensor& result : our_layer(inputs)) seeds.push_back(reel::randn(result.shape()));
  auto with_types = [&](reel::DType dtype, at::ScalarType type) {
    ours.to(dtype);
    theirs.to(type);
  };
  Compared found = run_ours(our_layer, pairs, inputs, seeds);
  Compared peer = run_theirs(their_layer, pairs, inputs, seeds, at::kFloat);
  with_types(reel::f64, at::kDouble);
  Compared found_wide = run_ours(our_layer, pairs, wide, seeds);
  Compared exact = run_theirs(their_layer, pairs, wide, seeds, at::kDouble);
  REQUIRE(found.size() == exact.size());
  // The scale of all gradients: one that cancels, such as that of a key's bias, has terms as large as the others.
  double scale = 0;
  for (const std::vector<double>& values : exact)
    scale = std::max(scale, largest_difference(values, std::vector<double>(values.size())));
  for (std::size_t i = 0; i < exact.size(); ++i) {
    INFO("result or gradient " << i);
    CHECK(largest_difference(found_wide[i], exact[i]) <= 64 * 0x1p-52 * scale);
    CHECK(largest_difference(found[i], exact[i]) <=
          std::max(64 * 0x1p-23 * scale, 2 * largest_difference(peer[i], exact[i])));
  }
}

}  // namespace reel_test
