#include <torch/csrc/autograd/autograd.h>

#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <vector>

#include "catch.h"
#include "peer/gradient_errors.h"
#include "peer/peers.h"

// The random rows of the op table, run by reel and by libtorch, both measured against f64.

namespace reel_test {

using namespace reel;

namespace {

// Equal shapes in every run, unless REEL_SEED sets another seed.
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
    add_activation_peers(made);
    add_resample_peers(made);
    add_normalise_peers(made);
    add_pooling_peers(made);
    add_convolution_peers(made);
    add_recurrent_peers(made);
    add_attention_peers(made);
    add_embedding_peers(made);
    add_loss_peers(made);
    add_ctc_peers(made);
    add_linear_algebra_peers(made);
    add_sparse_peers(made);
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
    case DType::i8: return at::kChar;
    case DType::i16: return at::kShort;
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

// The outcome: the elements of the result, then those of the gradient of each input of the row's dtype.
struct Results {
  std::vector<std::int64_t> shape;
  at::ScalarType type;
  std::vector<std::vector<double>> values;
};

Results ours(const Row& row, const std::vector<Tensor>& inputs, Tensor& seed) {
  Tape tape;
  std::vector<Tensor> sources;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (row.differentiable && row.inputs[i].takes_row_dtype() && is_floating(inputs[i].dtype()))
      tape.watch(sources.emplace_back(inputs[i]));
  Tensor y = row.run(inputs);
  Shape shape = y.shape();
  Results results{{shape.begin(), shape.end()}, torch_type(y.dtype()), {array_of(y).values}};
  if (sources.empty()) return results;
  seed = to(randn(y.shape()), y.dtype());
  for (const Tensor& gradient : tape.gradient(y, sources, {.seed = seed, .unconnected = Unconnected::zeros}))
    results.values.push_back(array_of(gradient).values);
  return results;
}

// The tensors replaced by their magnitudes, to find how large the terms are of which a sum is made.
enum class Magnitudes : std::uint8_t { none, seed, all };

Results theirs(const Row& row, const std::vector<Tensor>& inputs, const Tensor& seed, at::ScalarType type,
               Magnitudes magnitudes = Magnitudes::none) {
  std::vector<at::Tensor> x, sources;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor input = from_reel(inputs[i]);
    if (row.inputs[i].takes_row_dtype()) {
      input = input.to(type);
      if (magnitudes == Magnitudes::all) input = input.abs();
      if (row.differentiable && input.is_floating_point()) sources.push_back(input.requires_grad_(true));
    }
    x.push_back(input);
  }
  at::Tensor y = peers().at(row.op)(x, row.attributes);
  Results results{y.sizes().vec(), y.scalar_type(), {doubles_of(y)}};
  if (sources.empty()) return results;
  at::Tensor d = from_reel(seed).to(y.scalar_type()).reshape(y.sizes());
  for (const at::Tensor& gradient :
       torch::autograd::grad({y}, sources, {magnitudes == Magnitudes::none ? d : d.abs()}, true, false, true))
    results.values.push_back(gradient.defined() ? doubles_of(gradient) : std::vector<double>());
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (results.values[i + 1].empty()) results.values[i + 1].assign(static_cast<std::size_t>(sources[i].numel()), 0);
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

// The scale of a gradient's errors: its largest element, since Σ|terms| of each is rarely at hand; or its largest element
// with magnitudes throughout.
std::vector<double> gradient_scales(const std::vector<std::vector<double>>& sizes) {
  double largest = 1e-30;
  for (const std::vector<double>& size : sizes)
    for (double element : size)
      if (std::isfinite(element)) largest = std::max(largest, std::abs(element));
  return std::vector<double>(sizes[0].size(), largest);
}

// Raises the scales of a gradient to Σ |terms| of its elements, where that is known. Each term of a weight's has at most five
// roundings of half a unit: two of x − mean, those of the inverse deviation and of two products. The sum rounds partial sums,
// which are mostly much smaller than Σ |terms|.
void include_terms(std::vector<double>& scales, const Row& row, const std::vector<Tensor>& inputs, const Tensor& seed,
                   std::size_t input, const std::vector<double>& exact) {
  std::vector<at::Tensor> x;
  for (const Tensor& given : inputs) x.push_back(from_reel(to(given, f64)));
  at::Tensor d = from_reel(seed).to(at::kDouble), terms;
  if (input == 0 && is_decomposition(row.op)) terms = decomposition_terms(row.op, x[0], row.attributes, d);
  if (input == 1) terms = weight_terms(row.op, x, row.attributes, d);
  if (!terms.defined()) return;
  std::vector<double> sums = doubles_of(terms);
  REQUIRE(sums.size() == scales.size());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    CHECK(sums[i] >= std::abs(exact[i]) * (1 - 1e-9));
    scales[i] = std::max(scales[i], sums[i]);
  }
}

void check_error(const std::vector<double>& found, const std::vector<double>& peer, const std::vector<double>& exact,
                 const std::vector<double>& scales, double conditioned = 0) {
  constexpr double ulp = 0x1p-23;
  REQUIRE(found.size() == exact.size());
  REQUIRE(peer.size() == exact.size());
  CHECK(worst_error(found, exact, scales) <= std::max({4 * ulp, 2 * worst_error(peer, exact, scales), conditioned}));
}

// Gradients for whose errors there are bounds: what comes behind the result in `found`, one for each input of the row's
// dtype.
void check_bounds(const Row& row, const std::vector<std::vector<double>>& found,
                  const std::vector<std::vector<double>>& exact, const Arrays& bounds) {
  std::size_t k = 0;
  for (std::size_t i = 0; i < row.inputs.size(); ++i) {
    if (!row.inputs[i].takes_row_dtype()) continue;
    ++k;
    INFO("gradient of input " << i);
    REQUIRE(found[k].size() == exact[k].size());
    CHECK(worst_error(found[k], exact[k], bounds[i].values) <= 0x1p-23);
  }
  CHECK(k + 1 == found.size());
}

// The error bound of a decomposition's gradient, relative to Σ |terms|. The algorithm is backward stable: it is right for
// a matrix that is some max(M, N) ulp away. The gradient divides differences of what that moves by the distances of
// eigenvalues or singular values.
double conditioned_error(const Row& row, const Tensor& matrix) {
  double size = static_cast<double>(std::max(matrix.size(-1), matrix.size(-2)));
  return size * 0x1p-23 * amplification(row.op, from_reel(to(matrix, f64)));
}

void compare(const Row& row, DType dtype, std::uint64_t seed) {
  std::vector<Tensor> inputs = draw_inputs(row, dtype, seed);
  Tensor d;
  Results found = ours(row, inputs, d), peer = theirs(row, inputs, d, torch_type(dtype));
  CHECK(found.shape == peer.shape);
  CHECK(found.type == peer.type);
  if (!at::isFloatingType(peer.type)) {
    CHECK(found.values[0] == peer.values[0]);
    return;
  }
  Arrays wide;
  for (const Tensor& input : inputs) wide.push_back(array_of(input));
  Array expected = row.reference(wide);
  std::vector<double> scales;
  for (std::size_t i = 0; i < expected.values.size(); ++i) scales.push_back(expected.scale(i));
  check_error(found.values[0], peer.values[0], expected.values, scales);
  if (found.values.size() == 1) return;
  auto in_double = [&](Magnitudes magnitudes) { return theirs(row, inputs, d, at::kDouble, magnitudes).values; };
  auto exact = in_double(Magnitudes::none);
  static const std::map<std::string, GradientErrors> derived = gradient_errors();
  if (auto errors = derived.find(row.op); errors != derived.end())
    if (Arrays bounds = errors->second(wide, row.attributes, array_of(d)); !bounds.empty())
      return check_bounds(row, found.values, exact, bounds);
  auto of_seed = in_double(Magnitudes::seed), of_all = in_double(Magnitudes::all);
  for (std::size_t k = 1; k < found.values.size(); ++k) {
    INFO("gradient of input " << k - 1);
    std::vector<double> scales = gradient_scales({exact[k], of_seed[k], of_all[k]});
    include_terms(scales, row, inputs, d, k - 1, exact[k]);
    double conditioned = is_decomposition(row.op) ? conditioned_error(row, inputs[0]) : 0;
    check_error(found.values[k], peer.values[k], exact[k], scales, conditioned);
  }
}

// Returns true if libtorch has the op for these inputs: many of its ops take no integers.
bool has_peer(const Row& row, DType dtype, std::uint64_t seed) {
  if (is_floating(dtype)) return true;
  try {
    theirs(row, draw_inputs(row, dtype, seed), {}, torch_type(dtype));
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

// f32 and, where the op takes integers, their dtypes.
std::vector<DType> compared_dtypes(const Row& row) {
  std::vector<DType> dtypes;
  for (DType dtype : {f32, i64, boolean})
    if (std::find(row.dtypes.begin(), row.dtypes.end(), dtype) != row.dtypes.end()) dtypes.push_back(dtype);
  return dtypes;
}

// The ops of the README's table: lines "| `op` `another` | reason |".
std::set<std::string> ops_with_reason() {
  std::ifstream readme(REEL_PEER_README);
  REQUIRE(readme);
  std::set<std::string> ops;
  static const std::regex entry(R"(^\| (`\w+` )+\| \S.*\|$)"), name(R"(`(\w+)`)");
  for (std::string line; std::getline(readme, line);) {
    if (!std::regex_match(line, entry)) continue;
    std::string names = line.substr(0, line.find('|', 1));
    for (auto found = std::sregex_iterator(names.begin(), names.end(), name); found != std::sregex_iterator(); ++found)
      ops.insert((*found)[1]);
  }
  return ops;
}

}  // namespace

TEST_CASE("every op is compared with libtorch's on random rows, or the README says why not") {
  std::set<std::string> reasons = ops_with_reason(), registered, with_rows;
  for (const debug::OpDescription& op : debug::ops())
    if (!op.internal) registered.emplace(op.name);
  for (const Row& row : random_table(chosen_seed())) with_rows.insert(row.op);
  for (const std::string& op : registered) {
    CAPTURE(op);
    CHECK((peers().contains(op) || reasons.contains(op)));
  }
  for (const auto& [op, peer] : peers()) {
    CAPTURE(op);
    CHECK(registered.contains(op));
    CHECK(with_rows.contains(op));
  }
  for (const std::string& op : reasons) {
    CAPTURE(op);
    CHECK(registered.contains(op));
  }
}

TEST_CASE("ops and their gradients are as accurate as libtorch's on random shapes") {
  std::uint64_t seed = chosen_seed();
  manual_seed(seed);
  for (const Row& row : random_table(seed)) {
    if (!peers().contains(row.op)) continue;
    for (DType dtype : compared_dtypes(row)) {
      INFO("REEL_SEED=" << seed << ", " << row.name << ", " << reel::name_of(dtype));
      if (has_peer(row, dtype, seed)) compare(row, dtype, seed);
    }
  }
}

}  // namespace reel_test
