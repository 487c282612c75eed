#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

#include "catch.h"
#include "cuda/gpu.h"
#include "ops/table/row_checks.h"

// Compares every row of the op table on a device with the CPU. REEL_ROWS=matmul,conv keeps the rows whose names contain one of
// the words, REEL_ROW_STEP=20 every 20th of these. On a stand-in that computes nothing (tests/cuda/stand_in),
// REEL_UNCOMPARED=1 leaves the numbers out.

namespace reel_test {

using namespace reel;

namespace {

bool is_wanted(const Row& row) {
  // These read and write elements by pointer, which a device forbids.
  if (row.op == "data" || row.op == "write" || row.op == "item") return false;
  const char* words = std::getenv("REEL_ROWS");
  if (!words) return true;
  std::string rest = words;
  while (!rest.empty()) {
    std::size_t end = std::min(rest.find(','), rest.size());
    if (end > 0 && row.name.find(rest.substr(0, end)) != row.name.npos) return true;
    rest.erase(0, end + 1);
  }
  return false;
}

std::vector<Row> wanted(const std::vector<Row>& rows) {
  std::vector<Row> found;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(found), is_wanted);
  const char* text = std::getenv("REEL_ROW_STEP");
  std::size_t step = text ? std::max(1ul, std::strtoul(text, nullptr, 10)) : 1, kept = 0;
  for (std::size_t i = 0; i < found.size(); i += step) {
    if (kept != i) found[kept] = std::move(found[i]);
    ++kept;
  }
  found.resize(kept);
  return found;
}

std::vector<Tensor> on(Device device, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> moved;
  for (const Tensor& tensor : tensors) moved.push_back(to(tensor, device));
  return moved;
}

bool compares() {
  static const bool wanted = [] {
    const char* text = std::getenv("REEL_UNCOMPARED");
    return !text || std::string(text) != "1";
  }();
  return wanted;
}

// The largest accepted difference, divided by the largest element or 1.
double bound(DType dtype) {
  switch (dtype) {
    case DType::f32: return 1e-4;
    case DType::f64: return 1e-10;
    case DType::bf16: return 2 * last_place(DType::bf16);
    case DType::f16: return 2 * last_place(DType::f16);
    default: return 0;
  }
}

std::string difference(const Tensor& found, const Tensor& expected) {
  if (found.device() != gpu) return "the result lies on " + to_string(found.device());
  if (found.dtype() != expected.dtype()) return std::string("the result has dtype ") + name_of(found.dtype());
  if (!compares()) return {};
  if (found.shape() != expected.shape()) return "the result has shape " + to_string(found.shape());
  Array have = array_of(to(found, cpu)), want = array_of(expected);
  double largest = 1;
  for (double value : want.values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    double a = have.values[i], b = want.values[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= bound(found.dtype()) * largest))
      return fmt::format("element {} is {} instead of {}", i, a, b);
  }
  return {};
}

// The result of a row on the device. Rows without inputs make their tensors there.
Tensor run_on_device(const Row& row, const std::vector<Tensor>& inputs) {
  std::optional<DeviceGuard> guard;
  if (row.inputs.empty()) guard.emplace(gpu);
  return row.run(inputs);
}

// The row with its captured tensors on the device, such as offsets and targets.
Row with_own_tensors(const Row& row) {
  Row guarded = row;
  guarded.run = [run = row.run](std::span<const Tensor> x) {
    DeviceGuard guard(x.empty() ? gpu : x[0].device());
    return run(x);
  };
  return guarded;
}

std::string what_is_thrown(const std::function<void()>& run) {
  try {
    run();
    return {};
  } catch (const DeviceError& error) {
    return error.what();
  } catch (const Error& error) {
    // Results that were not computed may be refused on the CPU, such as sizes that depend on values.
    return compares() ? error.what() : "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string forward_difference(const Row& row, const std::vector<Tensor>& inputs) {
  std::string text;
  std::string thrown = what_is_thrown([&] { text = difference(run_on_device(row, on(gpu, inputs)), row.run(inputs)); });
  return thrown.empty() ? text : thrown;
}

struct Layout {
  std::string name;
  Tensor (*apply)(const Tensor& x);
};
const Layout layouts[] = {
    {"transposed",
     [](const Tensor& x) {
       Shape axes;
       for (int i = x.rank(); i-- > 0;) axes.push_back(i);
       return permute(copy(permute(x, axes)), axes);
     }},
    {"every third element, from the second",
     [](const Tensor& x) {
       return x.rank() == max_rank ? x : select(stack({x, x, x}, -1), -1, 1);
     }},
    {"backwards",
     [](const Tensor& x) {
       auto reversed = [](const Tensor& x) { return slice(x, 0, -1, std::numeric_limits<std::int64_t>::min(), -1); };
       return x.rank() == 0 ? x : reversed(copy(reversed(x)));
     }},
};

std::vector<Tensor> second_order(const Function& f, const std::vector<Tensor>& x) {
  return gradients(
      [&](std::span<const Tensor> x) {
        std::vector<Tensor> inner = gradients(f, {x.begin(), x.end()}), parts;
        for (const Tensor& gradient : inner) parts.push_back(sum(square(gradient)));
        // A linear op's gradient does not depend on x.
        for (const Tensor& input : x) parts.push_back(sum(square(input)));
        return sum(stack(parts));
      },
      x);
}

using Differentiate = std::vector<Tensor> (*)(const Function& f, const std::vector<Tensor>& x);

std::string gradient_difference(const Row& row, DType dtype, Differentiate differentiate) {
  std::vector<Tensor> inputs = draw_inputs(row, dtype, table_seed), there = on(gpu, inputs);
  std::string text;
  std::string thrown = what_is_thrown([&] {
    std::vector<Tensor> expected = differentiate(of_floating_inputs(row, inputs), floating_inputs(row, inputs));
    std::vector<Tensor> found = differentiate(of_floating_inputs(row, there), floating_inputs(row, there));
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (std::string apart = difference(found[i], expected[i]); !apart.empty())
        text += fmt::format("gradient {}: {}; ", i, apart);
  });
  return thrown.empty() ? text : thrown;
}

}  // namespace

TEST_CASE("every op gives on a device what it gives on the CPU, in every dtype") {
  if (lacks_device()) return;
  for (const Row& plain : wanted(table())) {
    Row row = with_own_tensors(plain);
    for (DType dtype : row.dtypes) {
      CAPTURE(row.name, name_of(dtype));
      CHECK(forward_difference(row, draw_inputs(row, dtype, table_seed)) == "");
    }
  }
}

TEST_CASE("every op gives on a device what it gives on the CPU, whatever the layout of its inputs") {
  if (lacks_device()) return;
  for (const Row& plain : wanted(table())) {
    Row row = with_own_tensors(plain);
    for (const Layout& layout : layouts) {
      CAPTURE(row.name, layout.name);
      std::vector<Tensor> inputs = draw_inputs(row, row.dtypes[0], table_seed), there;
      for (const Tensor& input : inputs) there.push_back(layout.apply(to(input, gpu)));
      std::string text, thrown = what_is_thrown([&] { text = difference(row.run(there), row.run(inputs)); });
      CHECK(thrown + text == "");
    }
  }
}

TEST_CASE("every op of random shapes gives on a device what it gives on the CPU") {
  if (lacks_device()) return;
  constexpr std::uint64_t seed = 11;
  CAPTURE(seed);
  for (const Row& plain : wanted(random_table(seed))) {
    Row row = with_own_tensors(plain);
    CAPTURE(row.name);
    CHECK(forward_difference(row, draw_inputs(row, row.dtypes[0], seed)) == "");
  }
}

TEST_CASE("every op gives the same bits on a device when it runs again") {
  if (lacks_device()) return;
  for (const Row& plain : wanted(table())) {
    Row row = with_own_tensors(plain);
    CAPTURE(row.name);
    std::vector<Tensor> inputs = on(gpu, draw_inputs(row, row.dtypes[0], table_seed));
    std::string thrown = what_is_thrown([&] { CHECK(same_bits(to(row.run(inputs), cpu), to(row.run(inputs), cpu))); });
    CHECK(thrown == "");
  }
}

TEST_CASE("every gradient on a device is that of the CPU") {
  if (lacks_device()) return;
  for (const Row& plain : wanted(table())) {
    if (!plain.differentiable) continue;
    Row row = with_own_tensors(plain);
    for (DType dtype : {f32, f64}) {
      if (std::find(row.dtypes.begin(), row.dtypes.end(), dtype) == row.dtypes.end()) continue;
      CAPTURE(row.name, name_of(dtype));
      CHECK(gradient_difference(row, dtype, gradients) == "");
    }
  }
}

TEST_CASE("every gradient of a gradient on a device is that of the CPU") {
  if (lacks_device()) return;
  for (const Row& plain : wanted(table())) {
    if (!checks_second_order(plain)) continue;
    Row row = with_own_tensors(plain);
    CAPTURE(row.name);
    CHECK(gradient_difference(row, f64, second_order) == "");
  }
}

TEST_CASE("every op answers or refuses on a device, whatever it is given") {
  if (lacks_device()) return;
  auto survives = [](const Row& row, const std::vector<Tensor>& inputs) -> std::string {
    try {
      std::vector<Tensor> there = on(gpu, inputs);
      Tape tape;
      std::vector<Tensor> sources;
      for (const Tensor& input : there)
        if (is_floating(input.dtype())) tape.watch(sources.emplace_back(input));
      Tensor y = row.run(there);
      if (row.differentiable && !sources.empty() && is_floating(y.dtype()))
        static_cast<void>(tape.gradient(y, sources, {.seed = ones_like(y), .unconnected = Unconnected::zeros}));
      detail::device_module().synchronise(0);
    } catch (const InternalError& error) {
      return error.what();
    } catch (const Error&) {
      // A fault that a kernel has found although the op threw for another reason.
      return what_is_thrown([] {
        try {
          detail::device_module().synchronise(0);
        } catch (const Error&) {
        }
      });
    } catch (const std::out_of_range&) {  // the row reads an output that does not exist
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  };
  for (const Row& plain : wanted(table())) {
    Row row = with_own_tensors(plain);
    std::vector<Tensor> inputs = draw_inputs(row, row.dtypes[0], table_seed);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      using Integers = std::numeric_limits<std::int64_t>;
      std::vector<Tensor> odd{zeros({0}, {.dtype = inputs[i].dtype()}), zeros({0, 3, 0}, {.dtype = inputs[i].dtype()}),
                              ones({}, {.dtype = inputs[i].dtype()}), to(inputs[i], f16)};
      for (int axis = 0; axis < inputs[i].rank(); ++axis) odd.push_back(slice(inputs[i], axis, 0, 0));
      if (is_floating(inputs[i].dtype()))
        for (double number : {double(NAN), HUGE_VAL, -HUGE_VAL, -0.0, 1e308})
          odd.push_back(full(inputs[i].shape(), number, {.dtype = inputs[i].dtype()}));
      else if (inputs[i].dtype() == i64)
        for (std::int64_t number : {Integers::min(), Integers::max(), std::int64_t{-1}})
          odd.push_back(full(inputs[i].shape(), number, {.dtype = i64}));
      for (const Tensor& other : odd) {
        std::vector<Tensor> others = inputs;
        others[i] = other;
        CAPTURE(row.name, i, to_string(other.shape()), name_of(other.dtype()));
        CHECK(survives(row, others) == "");
      }
    }
  }
}

}  // namespace reel_test
