#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>

#include "../peer/timing.h"
#include "core/storage.h"
#include "sweep.h"

namespace reel_bench {

namespace {

using reel::Tensor;

// Numbers for an operand's storage.
Tensor storage_of(const Operand& x, const Op<Tensor>& op, std::int64_t below, std::uint64_t seed) {
  std::int64_t count = x.offset + 1;
  for (int axis = 0; axis < x.shape.rank(); ++axis) count += (x.shape[axis] - 1) * x.strides[axis];
  std::vector<double> numbers(static_cast<std::size_t>(std::max<std::int64_t>(count, 1)));
  auto [low, high] = range_of(op);
  if (x.dtype == reel::i64) {
    bool indices = below != Attributes::unset;
    low = indices ? 0 : std::ceil(4 * low);
    high = indices ? static_cast<double>(below) : 4 * high;
  } else if (x.dtype == reel::boolean) {
    low = 0;
    high = 2;
  }
  std::mt19937_64 random(seed);
  for (double& number : numbers) {
    number = low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
    if (!is_floating(x.dtype)) number = std::floor(number);
  }
  return reel::to(reel::tensor(numbers), x.dtype);
}

Tensor operand_of(const Case& one, std::size_t i, const Op<Tensor>& op, std::uint64_t seed) {
  const Operand& x = one.operands[i];
  Tensor storage = storage_of(x, op, one.attributes.below, seed);
  Tensor view = reel::detail::view_of(storage, x.shape, x.strides, x.offset, reel::Location::here());
  if (has_word(op, fmt::format("sorted{}", i))) reel::copy_(view, sort(view).values);
  if (i == 0 && has_word(op, "definite")) {
    std::int64_t n = x.shape[-1];
    reel::copy_(view, matmul(view, transpose(view)) / static_cast<double>(n) + reel::eye(n, {.dtype = x.dtype}));
  }
  return view;
}

Runnable our_call(bool gradient, std::shared_ptr<Call<Tensor>> call, Tensor (*run)(const Call<Tensor>&),
                  const std::vector<std::size_t>& sources, const Tensor& seed) {
  if (!gradient) return {[=] { run(*call); }, [=] { return std::vector{run(*call)}; }};
  std::vector<Tensor> by;
  for (std::size_t i : sources) by.push_back(call->x[i]);
  auto differentiate = [=] {
    reel::Tape tape;
    for (const Tensor& x : by) tape.watch(x);
    std::vector<Tensor> results{run(*call)};
    for (Tensor& gradient : tape.gradient(results[0], by, {.seed = seed})) results.push_back(std::move(gradient));
    return results;
  };
  return {[=] { differentiate(); }, differentiate};
}

// The difference that rounding may make, relative to the largest element.
double tolerance(reel::DType dtype) {
  switch (dtype) {
    case reel::f32: return 1e-3;
    case reel::f64: return 1e-9;
    case reel::bf16: return 4e-2;
    case reel::f16: return 1e-2;
    default: return 0;
  }
}

std::string difference(const Tensor& ours, const Tensor& theirs, double tolerated) {
  if (ours.shape() != theirs.shape())
    return fmt::format("shape {}, not {}", to_string(ours.shape()), to_string(theirs.shape()));
  auto doubles = [&](const Tensor& x) { return to(to(x, ours.dtype()), reel::f64).to_vector<double>(); };
  std::vector<double> a = doubles(ours), b = doubles(theirs);
  double largest = 1;
  for (double number : b)
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (!(std::abs(a[i] - b[i]) <= tolerated * largest)) return fmt::format("{} at {}, not {}", a[i], i, b[i]);
  }
  return {};
}

std::string difference(const std::vector<Tensor>& ours, const std::vector<Tensor>& theirs, reel::DType dtype) {
  for (std::size_t i = 0; i < ours.size(); ++i) {
    double tolerated = std::max(tolerance(dtype), tolerance(ours[i].dtype()));
    if (std::string found = difference(ours[i], theirs[i], tolerated); !found.empty())
      return i == 0 ? found : fmt::format("gradient {}: {}", i - 1, found);
  }
  return {};
}

}  // namespace

PreparedCase::PreparedCase(const Case& given) : one(given) {
  const Op<Tensor>& op = op_named(one.op);
  std::string_view specification = op.specification;
  if (static_cast<std::ptrdiff_t>(one.operands.size()) != std::count(specification.begin(), specification.end(), '['))
    throw std::invalid_argument(fmt::format("{} has another number of operands", one.op));
  std::uint64_t seed = std::hash<std::string>()(to_string(one));
  auto call = std::make_shared<Call<Tensor>>();
  static_cast<Attributes&>(*call) = one.attributes;
  std::size_t most = has_word(op, "by1") ? 1 : has_word(op, "by3") ? 3 : 8;
  std::vector<std::size_t> sources;
  for (std::size_t i = 0; i < one.operands.size(); ++i) {
    call->x.push_back(operand_of(one, i, op, seed + i));
    if (i < most && is_floating(one.operands[i].dtype)) sources.push_back(i);
  }
  reel::Generator generator(seed);
  Tensor y = op.run(*call), d = reel::to(reel::rand(y.shape(), {.generator = &generator}), y.dtype());
  ours = our_call(one.gradient, call, op.run, sources, d);
  exact = [=, this] {
    auto wide = std::make_shared<Call<Tensor>>(*call);
    for (Tensor& x : wide->x)
      if (is_floating(x.dtype())) x = reel::to(x, reel::f64);
    return our_call(one.gradient, wide, op.run, sources, reel::to(d, reel::f64)).results();
  };
  theirs = peer_call(one, call->x, sources, d);
}

std::string difference(const PreparedCase& prepared) {
  if (has_word(op_named(prepared.one.op), "free")) return {};
  std::vector<Tensor> found = prepared.ours.results();
  reel::DType dtype = prepared.one.operands[0].dtype;
  std::string differs = difference(found, prepared.theirs->results(), dtype);
  // The peer may be the one that is wrong, by its rounding. Halves have ties, whose gradients the libraries divide differently.
  std::string really = differs.empty() ? "" : difference(found, prepared.exact(), dtype);
  return really.empty() ? "" : fmt::format("{}; beside f64: {}", differs, really);
}

Timing time_both(const PreparedCase& prepared) {
  const std::function<void()>* sides[] = {&prepared.ours.run, &prepared.theirs->run};
  Repeats repeats[2];
  double round = 0;
  for (int side : {0, 1}) {
    time_of(*sides[side], {1, false});
    double each = std::min(time_of(*sides[side], {1, false}).thread, time_of(*sides[side], {3, false}).thread);
    repeats[side] = {std::clamp(static_cast<int>(1 / each), 1, 1000), false};
    round += repeats[side].times * each;
  }
  Times times[2];
  for (int left = std::clamp(static_cast<int>(300 / round), 5, 15); left > 0; --left)
    for (int side : {left % 2, 1 - left % 2}) times[side].push_back(time_of(*sides[side], repeats[side]).thread);
  return {median(times[0]) * 1e3, median(times[1]) * 1e3, median(divided(times[0], times[1]))};
}

}  // namespace reel_bench
