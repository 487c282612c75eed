#include <reel/batching.h>
#include <reel/reel.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "batching/checks.h"
#include "batching/fibre.h"
#include "batching/stack_overflow.h"
#include "catch.h"
#include "debug/temporary_file.h"
#include "ops/table/row_checks.h"

// Recursion to the end of an example's stack is an Error, whatever op comes last.

namespace reel_test {

using namespace reel;

namespace {

std::size_t stack_left() {
  return static_cast<std::size_t>(static_cast<const char*>(__builtin_frame_address(0)) - detail::running_guard.end);
}

// Calls f() with at most `left` bytes of the stack left.
template <class F>
[[gnu::noinline]] void descend(std::size_t left, const F& f) {
  volatile char frame[400];
  frame[0] = 0;
  if (stack_left() > left)
    descend(left, f);
  else
    f();
  static_cast<void>(frame[0]);
}

// Calls f() at each level of a recursion until less than `least` bytes are left, then g().
template <class F, class G>
[[gnu::noinline]] void recurse(std::size_t least, const F& f, const G& g) {
  volatile char frame[1800];
  frame[0] = 0;
  f();
  if (stack_left() > least)
    recurse(least, f, g);
  else
    g();
  static_cast<void>(frame[0]);
}

// Runs f() at many depths within examples: around where kernels leave the example's stack, and down to its end, where
// each level also calls an op. Returns the error.
std::string error_at_the_end(std::size_t stack_bytes, const std::function<void()>& f) {
  Tensor one = ones({3});
  return error_of<Error>([&] {
    batch_map(std::vector<int>{0, 1},
              [&](int) {
                auto f_and_op = [&] { f(), static_cast<void>(tanh(one)); };
                auto to_the_end = [&] {
                  descend(detail::reserved_bytes + (8 << 10), [&] { recurse(0, f_and_op, [] {}); });
                };
                descend(detail::kernel_bytes + (12 << 10),
                        [&] { recurse(std::min(detail::kernel_bytes, stack_left()), f_and_op, to_the_end); });
              },
              {.stack_bytes = stack_bytes});
  });
}

constexpr std::size_t stack_sizes[] = {64 << 10, 256 << 10, 1 << 20, 8 << 20};

void check_error(std::size_t stack_bytes, const std::function<void()>& f) {
  // Calls pass the scheduler, or run at once.
  for (double factor : {0.0, 1.0}) {
    CAPTURE(factor);
    GroupCost cost(factor);
    CHECK_THAT(error_at_the_end(stack_bytes, f),
               contains("the example's recursion fills its stack of " + std::to_string(stack_bytes >> 10) + " KB"));
  }
}

void check_row(const Row& row, DType dtype, bool differentiates, std::size_t stack_bytes) {
  CAPTURE(table_seed, row.name, name_of(dtype), stack_bytes);
  std::vector<Tensor> inputs = draw_inputs(row, dtype, table_seed);
  std::vector<Tensor> sources = differentiates ? floating_inputs(row, inputs) : std::vector<Tensor>();
  check_error(stack_bytes, [&] {
    if (sources.empty()) return static_cast<void>(row.run(inputs));
    Tape tape;
    for (const Tensor& source : sources) tape.watch(source);
    tape.gradient(sum(row.run(inputs)), sources, {.unconnected = Unconnected::zeros});
  });
}

}  // namespace

TEST_CASE("recursion to the end of an example's stack is an error, with any op of the table as the last one") {
  bool thorough = std::getenv("REEL_ENDURANCE");
  for (std::size_t stack_bytes : stack_sizes)
    for (const Row& row : table())
      for (DType dtype : row.dtypes) {
        bool chosen = dtype == row.dtypes[0] && (stack_bytes == 64 << 10 || stack_bytes == 1 << 20);
        if (!chosen && !thorough) continue;
        check_row(row, dtype, thorough && dtype == f64 && checks_gradient(row), stack_bytes);
      }
}

TEST_CASE("recursion to the end of an example's stack is an error after decompositions of large matrices") {
  Tensor a = randn({200, 200}), wide = to(a, f64), definite = wide + 5 * eye(200, {.dtype = f64});
  const std::vector<std::pair<const char*, std::function<Tensor()>>> ops{
      {"norm", [&] { return norm(a); }},
      {"cdist", [&] { return cdist(a, a); }},
      {"matmul f64", [&] { return matmul(wide, wide); }},
      {"matrix_exp", [&] { return matrix_exp(0.01 * a); }},
      {"solve f64", [&] { return solve(definite, wide); }},
      {"lstsq", [&] { return lstsq(a, a).solution; }},
      {"qr", [&] { return qr(a).q; }},
      {"svd", [&] { return svd(slice(a, 0, 0, 40)).u; }},
      {"pinv", [&] { return pinv(slice(a, 0, 0, 40)); }},
  };
  for (std::size_t stack_bytes : stack_sizes)
    for (const auto& [name, op] : ops) {
      CAPTURE(name, stack_bytes);
      int calls = 0;
      // Each is called where least is left on either side of the bound.
      check_error(stack_bytes, [&] {
        bool near_end = stack_left() < detail::reserved_bytes + (4 << 10);
        if (near_end || calls++ % 4 == 0) op();
      });
    }
}

TEST_CASE("recursion to the end of an example's stack is an error after what is no op") {
  Tensor x = randn({30, 40}), matrix = randn({3, 4});
  nn::LSTM lstm(4, 5);
  nn::WeightNorm<nn::Linear> layer(nn::Linear(4, 2));
  optim::Adam adam(layer.parameters());
  TemporaryFile folder("weights");
  std::string file = folder.path();
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"print", [&] { std::ostringstream() << x; }},
      {"elements", [&] { static_cast<void>(x.to_vector<float>()); }},
      {"an error", [&] { error_of<Error>([&] { matmul(x, x); }); }},
      {"checkpoint", [&] { checkpoint([](const Tensor& x) { return tanh(x); }, x); }},
      {"lstm",
       [&] {
         lstm(reshape(matrix, {1, 3, 4}));
       }},
      {"parametrised", [&] { layer(matrix); }},
      {"functional_call", [&] { nn::functional_call(layer, layer.named_parameters(), matrix); }},
      {"replaced parameters",
       [&] {
         std::vector<NamedTensor> list = layer.named_parameters();
         nn::ReplacedParameters scope(layer, list);
         layer(matrix);
       }},
      {"an optimiser's step",
       [&] {
         Tape tape;
         tape.backward(sum(layer(matrix)));
         adam.step();
       }},
      {"both", [&] { both([&] { return svd(matrix).s; }, [&] { return norm(matrix); }); }},
      {"an inner batch",
       [&] {
         batch_map(std::vector<int>{0, 1}, [&](int) { return norm(matrix); });
       }},
      {"io",
       [&] {
         io::save(file + ".safetensors", {{"x", x}}), io::load(file + ".safetensors");
       }},
      {"npz",
       [&] {
         io::save_npz(file + ".npz", {{"x", x}}), io::load_npz(file + ".npz");
       }},
  };
  for (std::size_t stack_bytes : stack_sizes)
    for (const auto& [name, call] : calls) {
      CAPTURE(name, stack_bytes);
      check_error(stack_bytes, call);
    }
}

TEST_CASE("recursion to the end of an example's stack is an error while ops are recorded, profiled and checked") {
  Tensor x = randn({30, 40});
  TemporaryFile file("run.reel");
  for (std::size_t stack_bytes : stack_sizes) {
    CAPTURE(stack_bytes);
    debug::Recording recording(file.path());
    debug::Profile profile;
    auto anomaly = debug::detect_anomaly();
    check_error(stack_bytes, [&] { norm(x / 2); });
  }
}

}  // namespace reel_test
