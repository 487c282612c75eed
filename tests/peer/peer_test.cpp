#include <torch/torch.h>

#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

#include "catch.h"
#include "peer/peers.h"

// The random rows of the op table, run by reel and by libtorch, both measured against f64.

namespace reel_test {

using namespace reel;

namespace {

// The same shapes each time, unless REEL_SEED asks for others.
std::uint64_t chosen_seed() {
  if (const char* given = std::getenv("REEL_SEED")) return std::strtoull(given, nullptr, 10);
  return 1;
}

const Peers& peers() {
  static const Peers all = [] {
    Peers made;
    add_create_peers(made);
    add_elementwise_peers(made);
    add_reduce_peers(made);
    add_shape_peers(made);
    add_index_peers(made);
    add_in_place_peers(made);
    add_matmul_peers(made);
    add_network_peers(made);
    return made;
  }();
  return all;
}

at::ScalarType torch_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return at::kDouble;
    case DType::i64: return at::kLong;
    case DType::i32: return at::kInt;
    case DType::u8: return at::kByte;
    case DType::boolean: return at::kBool;
    default: return at::kFloat;
  }
}

at::Tensor from_reel(const Tensor& x) {
  Shape shape = x.shape();
  at::Tensor made = at::empty(std::vector<std::int64_t>(shape.begin(), shape.end()), torch_type(x.dtype()));
  Tensor packed = contiguous(x);
  if (x.numel() != 0)
    std::memcpy(made.data_ptr(), packed.body().data, static_cast<std::size_t>(x.numel()) * size_of(x.dtype()));
  return made;
}

std::vector<double> doubles_of(const at::Tensor& x) {
  at::Tensor wide = x.detach().to(at::kDouble).contiguous();
  const double* first = wide.data_ptr<double>();
  return {first, first + wide.numel()};
}

// A result, then the gradient of each input that takes the row's dtype.
using Results = std::vector<std::vector<double>>;

Results ours(const Row& row, const std::vector<Tensor>& inputs, Tensor& seed) {
  Tape tape;
  std::vector<Tensor> sources;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (row.differentiable && row.inputs[i].takes_row_dtype()) tape.watch(sources.emplace_back(inputs[i]));
  Tensor y = row.run(inputs);
  Results results{array_of(y).values};
  if (sources.empty()) return results;
  for (const Tensor& source : sources)
    if (y.is(source)) y = reshape(y, y.shape());
  seed = randn(y.shape());
  for (const Tensor& gradient : tape.gradient(y, sources, {.seed = seed, .unconnected = Unconnected::zeros}))
    results.push_back(array_of(gradient).values);
  return results;
}

// `magnitudes`: with the inputs' and the seed's magnitudes.
Results theirs(const Row& row, const std::vector<Tensor>& inputs, const Tensor& seed, at::ScalarType type,
               bool magnitudes = false) {
  std::vector<at::Tensor> x, sources;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor input = from_reel(inputs[i]);
    if (row.inputs[i].takes_row_dtype()) {
      input = input.to(type);
      if (magnitudes) input = input.abs();
      if (row.differentiable) sources.push_back(input.requires_grad_(true));
    }
    x.push_back(input);
  }
  at::Tensor y = peers().at(row.op)(x, row.attributes);
  Results results{doubles_of(y)};
  if (sources.empty()) return results;
  at::Tensor d = from_reel(seed).to(type).reshape(y.sizes());
  for (const at::Tensor& gradient : torch::autograd::grad({y}, sources, {magnitudes ? d.abs() : d}, true, false, true))
    results.push_back(gradient.defined() ? doubles_of(gradient) : std::vector<double>());
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (results[i + 1].empty()) results[i + 1].assign(static_cast<std::size_t>(sources[i].numel()), 0);
  return results;
}

// The largest error in units of the scale.
double worst_error(const std::vector<double>& found, const std::vector<double>& exact,
                   const std::vector<double>& scales) {
  double worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (found[i] == exact[i] || (std::isnan(found[i]) && std::isnan(exact[i]))) continue;
    double error = std::abs(found[i] - exact[i]) / scales[i];
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

void compare(const Row& row, std::uint64_t seed, double& slack) {
  constexpr double ulp = 0x1p-23;
  std::vector<Tensor> inputs = draw_inputs(row, f32, seed);
  Tensor d;
  Results found = ours(row, inputs, d);
  Arrays wide;
  for (const Tensor& input : inputs) wide.push_back(array_of(input));
  Array expected = row.reference(wide);
  Results peer = theirs(row, inputs, d, at::kFloat), exact = theirs(row, inputs, d, at::kDouble),
          sizes = theirs(row, inputs, d, at::kDouble, true);
  REQUIRE(found.size() == peer.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    INFO((k == 0 ? "result" : "gradient of input " + std::to_string(k - 1)));
    const std::vector<double>& truth = k == 0 ? expected.values : exact[k];
    REQUIRE(found[k].size() == truth.size());
    REQUIRE(peer[k].size() == truth.size());
    std::vector<double> scales;
    for (std::size_t i = 0; i < truth.size(); ++i) scales.push_back(k == 0 ? expected.scale(i) : std::abs(truth[i]));
    if (k > 0) {
      // Gradients are judged by the largest: Σ|terms| of each is not at hand.
      double largest = 1e-30;
      for (double size : scales) largest = std::max(largest, size);
      for (double size : sizes[k])
        if (std::isfinite(size)) largest = std::max(largest, std::abs(size));
      scales.assign(scales.size(), largest);
    }
    double our_error = worst_error(found[k], truth, scales), their_error = worst_error(peer[k], truth, scales);
    slack = std::max(slack, our_error / std::max(4 * ulp, 2 * their_error));
    CHECK(our_error <= std::max(4 * ulp, 2 * their_error));
  }
}

}  // namespace

TEST_CASE("ops and their gradients are as accurate as libtorch's on random shapes") {
  std::uint64_t seed = chosen_seed();
  manual_seed(seed);
  for (const Row& row : random_table(seed)) {
    if (!peers().contains(row.op)) continue;
    if (std::find(row.dtypes.begin(), row.dtypes.end(), f32) == row.dtypes.end()) continue;
    INFO("REEL_SEED=" << seed << ", " << row.name);
    double slack = 0;
    compare(row, seed, slack);
  }
}

}  // namespace reel_test
