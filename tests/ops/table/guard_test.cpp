#include <reel/reel.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>
#include <string_view>

#include "catch.h"
#include "ops/registry.h"
#include "ops/table/guard_interceptor.h"
#include "ops/table/row_checks.h"
#include "thread_scope.h"

// Faults of any op at any arguments: writing beside its outputs, changing an input, depending on the number of threads,
// ending with anything but a result or an Error.

namespace reel_test {

using namespace reel;

namespace {

// The result, then the gradients if there are any.
std::vector<Tensor> results(const Row& row, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> all{row.run(inputs)};
  if (!row.differentiable || !is_floating(all[0].dtype())) return all;
  for (Tensor& gradient : gradients(of_floating_inputs(row, inputs), floating_inputs(row, inputs)))
    all.push_back(std::move(gradient));
  return all;
}

std::vector<Tensor> results_with(int threads, const std::function<std::vector<Tensor>()>& run) {
  Threads scope(threads);
  return run();
}

void check_threads(const std::function<std::vector<Tensor>()>& run) {
  std::vector<Tensor> alone = results_with(1, run);
  for (int threads : {2, 3}) {
    std::vector<Tensor> together = results_with(threads, run);
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(same_bits(alone[i], together[i]));
  }
}

// The thread sanitizer does not see the barriers between these threads.
bool one_thread_only() {
  const char* count = std::getenv("OMP_NUM_THREADS");
  return count && std::string_view(count) == "1";
}

std::vector<Tensor> empties(const Tensor& x) {
  std::vector<Tensor> all{zeros({0}, {.dtype = x.dtype()}), zeros({0, 3, 0}, {.dtype = x.dtype()})};
  for (int axis = 0; axis < x.rank(); ++axis) all.push_back(slice(x, axis, 0, 0));
  return all;
}

// Unusual tensors that a caller might pass to an op in place of x.
std::vector<Tensor> odd_versions(const Tensor& x) {
  std::vector<Tensor> all = empties(x);
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1, 2, 1, 1, 1, 2, 1}})
    all.push_back(ones(shape, {.dtype = x.dtype()}));
  for (DType dtype : all_dtypes) all.push_back(to(x, dtype));
  using Integers = std::numeric_limits<std::int64_t>;
  if (is_floating(x.dtype()))
    for (double number : {double(NAN), HUGE_VAL, -HUGE_VAL, -0.0, 1e308})
      all.push_back(full(x.shape(), number, {.dtype = x.dtype()}));
  else if (x.dtype() == i64)
    for (std::int64_t number : {Integers::min(), Integers::max(), std::int64_t{-1}})
      all.push_back(full(x.shape(), number, {.dtype = i64}));
  return all;
}

// Runs a row forward and backward. Returns an empty text if it has a result, or an Error that blames and locates the
// line.
std::string surprise(const Row& row, const std::vector<Tensor>& inputs) {
  try {
    Tape tape;
    std::vector<Tensor> sources;
    for (const Tensor& input : inputs)
      if (is_floating(input.dtype())) tape.watch(sources.emplace_back(input));
    Tensor y = row.run(inputs);
    if (row.differentiable && !sources.empty() && is_floating(y.dtype()))
      static_cast<void>(tape.gradient(y, sources, {.seed = ones_like(y), .unconnected = Unconnected::zeros}));
  } catch (const InternalError& error) {
    return error.what();
  } catch (const Error& error) {
    std::string_view text = error.what();
    if (text.find("at lib/") != text.npos) return std::string(text);
  } catch (const std::out_of_range&) {  // the row reads an output that does not exist
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

// An op that writes beside its result and into its operand.
constexpr detail::OpInfo vandal{
    .name = "vandal",
    .forward =
        [](detail::Call& call) {
          call.input(0).as<float>()[0] = 7;
          call.output().as<float>()[-1] = 7;
        },
};

}  // namespace

TEST_CASE("a guard sees what an op does to its input, and beside its output") {
  GuardInterceptor guard;
  InterceptorScope interceptor(guard);
  Tensor x = ones({3});
  detail::invoke(vandal, {&x}, {x.body(), f32}, Location::here());
  CHECK(guard.take_faults() == "vandal wrote beside its output 0; vandal changed an input; ");
}

TEST_CASE("no op writes beside its outputs or to its inputs, forward or backward, and all stand in the registry") {
  GuardInterceptor guard;
  InterceptorScope interceptor(guard);
  for (const Row& row : table()) {
    CAPTURE(row.name);
    for (DType dtype : row.dtypes) {
      CAPTURE(reel::name_of(dtype));
      CHECK(forward_fault(row, dtype) == "");
      CHECK(guard.take_faults() == "");
    }
    if (!row.differentiable) continue;
    CHECK(narrow_gradient_fault(row) == "");
    if (checks_second_order(row)) CHECK(second_order_fault(row) == "");
    CHECK(guard.take_faults() == "");
  }
  std::set<const detail::OpInfo*> registered;
  for (const detail::OpFamily& family : detail::registered_ops())
    registered.insert(family.ops.begin(), family.ops.end());
  for (const detail::OpInfo* op : guard.ops()) {
    CAPTURE(op->name);
    CHECK(registered.contains(op));
  }
}

TEST_CASE("every op answers or refuses, whatever it is given") {
  GuardInterceptor guard;
  InterceptorScope interceptor(guard);
  for (const Row& row : table()) {
    CAPTURE(row.name);
    std::vector<Tensor> inputs = draw_inputs(row, row.dtypes[0], table_seed);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::vector<Tensor> others = inputs;
      others[i] = {};
      CAPTURE(i);
      CHECK_THROWS_AS(row.run(others), Error);
      for (const Tensor& odd : odd_versions(inputs[i])) {
        others[i] = odd;
        CAPTURE(to_string(odd.shape()), reel::name_of(odd.dtype()));
        CHECK(surprise(row, others) == "");
        CHECK(guard.take_faults() == "");
      }
    }
    std::vector<Tensor> nothing;
    for (const Tensor& input : inputs) nothing.push_back(empties(input).back());
    CHECK(surprise(row, nothing) == "");
    CHECK(guard.take_faults() == "");
  }
}

TEST_CASE("no op and no gradient passes through NaN or infinity on its way to finite results") {
  auto is_finite = [](const Tensor& x) { return !is_floating(x.dtype()) || all(isfinite(x)).item<bool>(); };
  for (const Row& row : table()) {
    CAPTURE(row.name);
    std::vector<Tensor> inputs = draw_inputs(row, row.dtypes[0], table_seed), found = results(row, inputs);
    if (!std::all_of(found.begin(), found.end(), is_finite)) continue;
    // These ops mask with infinities.
    bool masks = row.name.find("mask") != row.name.npos || row.name.find("zero_infinity") != row.name.npos;
    auto scope = debug::detect_anomaly({.infinities = !masks});
    CHECK_NOTHROW(results(row, inputs));
  }
}

TEST_CASE("every op gives the same bits whatever the number of threads") {
  if (one_thread_only()) return;
  constexpr std::uint64_t seed = 3;
  for (const std::vector<Row>& rows : {table(), random_table(seed)})
    for (const Row& row : rows) {
      CAPTURE(row.name);
      std::vector<Tensor> inputs = draw_inputs(row, row.dtypes[0], table_seed);
      check_threads([&] { return results(row, inputs); });
    }
}

TEST_CASE("large results have the same bits whatever the number of threads") {
  if (one_thread_only()) return;
  Generator generator(5);
  Tensor x = randn({400, 1031}, {.generator = &generator}), w = randn({1031, 129}, {.generator = &generator});
  Tensor places = to(rand({100, 1031}, {.generator = &generator}) * 400, i64), rows = select(places, 1, 0);
  const std::pair<const char*, std::function<Tensor(const Tensor&)>> cases[] = {
      {"tanh", [](const Tensor& x) { return tanh(x); }},
      {"mul", [](const Tensor& x) { return mul(x, x); }},
      {"add a row", [](const Tensor& x) { return add(x, slice(x, 0, 0, 1)); }},
      {"transposed copy", [](const Tensor& x) { return copy(transpose(x)); }},
      {"sum of all", [](const Tensor& x) { return sum(x); }},
      {"sum of rows", [](const Tensor& x) { return sum(x, {0}); }},
      {"sum of columns", [](const Tensor& x) { return sum(x, {1}); }},
      {"max", [](const Tensor& x) { return max(x, {0}); }},
      {"softmax", [](const Tensor& x) { return softmax(x, 0); }},
      {"concat",
       [](const Tensor& x) {
         return concat({x, x}, 1);
       }},
      {"matmul", [&](const Tensor& x) { return matmul(x, w); }},
      {"gather", [&](const Tensor& x) { return gather(x, 0, places); }},
      {"scatter_add", [&](const Tensor& x) { return scatter_add(x, 0, places, slice(x, 0, 0, 100)); }},
      {"index_add", [&](const Tensor& x) { return index_add(x, 0, rows, slice(x, 0, 0, 100)); }},
      {"sort", [](const Tensor& x) { return sort(x).values; }},
      {"argsort of columns", [](const Tensor& x) { return argsort(x, 0); }},
      {"topk", [](const Tensor& x) { return topk(x, 10, 0).values; }},
      {"masked_select", [](const Tensor& x) { return masked_select(x, x > 0); }},
  };
  for (const auto& [name, f] : cases)
    for (DType dtype : {f32, bf16}) {
      CAPTURE(name, reel::name_of(dtype));
      Tensor operand = to(x, dtype);
      check_threads([&, &f = f] {
        std::vector<Tensor> all{f(operand)};
        if (is_floating(all[0].dtype()))
          all.push_back(gradients([&](std::span<const Tensor> x) { return f(x[0]); }, {operand})[0]);
        return all;
      });
    }
}

}  // namespace reel_test
