#include <optional>
#include <string>
#include <vector>

#include "batching/checks.h"
#include "core/op.h"
#include "dispatch/invoke.h"

// BatchOptions::verify: groups that do not compute what their calls do alone.

namespace reel_test {

using namespace reel;

namespace {

using detail::Call;
using detail::Gradient;
using detail::Joining;
using detail::OpInfo;

void add_rows_before(Call& call) {
  Tensor x = contiguous(*call.inputs[0]);
  const double* from = x.data<double>();
  auto* to = static_cast<double*>(call.output().data);
  double sum = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) to[i] = sum += from[i];
}

// Row i depends on the rows before it, so calls must not be joined by rows.
constexpr OpInfo mixing_op{
    .name = "mixing",
    .forward = add_rows_before,
    .joining = [](const Call&) -> Joining { return {.by = Joining::By::rows}; },
};

Tensor mixing(const Tensor& x, Location where = Location::here()) {
  return detail::invoke(mixing_op, {&x}, {x.shape(), x.dtype(), x.device()}, where);
}

}  // namespace

TEST_CASE("verification names the op and the line of a group that mixes examples up") {
  manual_seed(3);
  std::vector<Tensor> inputs{draw({2, 3}), draw({2, 3}), draw({1, 3})};
  int line = 0;
  auto run = [&](const BatchOptions& options) {
    return batch_map(
        inputs,
        [&](const Tensor& x) {
          line = __LINE__ + 1;
          return mixing(x);
        },
        options);
  };
  std::vector<Tensor> right = run({.immediate = true, .verify = true});
  CHECK(max(abs(run({})[1] - right[1])).item() > 0.1);
  std::string text = error_of<Error>([&] { run({.verify = true}); });
  CHECK_THAT(text, contains("mixing: run for 3 examples at once gives another result than alone"));
  CHECK_THAT(text, contains(line_of("../../tests/batching/verify_test.cpp", line)));
}

TEST_CASE("verification accepts groups that compute what their calls do alone, with gradients") {
  manual_seed(4);
  Tensor W = draw({3, 3}).requires_grad();
  std::vector<Tensor> inputs{draw({2, 3}), draw({1, 3}), draw({2, 3})};
  BatchReport report;
  Tape tape;
  std::vector<Tensor> made = batch_map(inputs, [&](const Tensor& x) { return sum(softmax(tanh(matmul(x, W)) * x)); },
                                       {.verify = true, .report = &report});
  CHECK(tape.gradient(sum(stack(made)), W).shape() == W.shape());
  CHECK(report.lines.front().grouped == 3);
}

TEST_CASE("verification accepts right results while a listener sees outputs that no function returns") {
  std::vector<int> three = numbers(3);
  auto check_all = [&] {
    CHECK_NOTHROW(batch_map(three, [](int i) { return max_pool1d(full({1, 1, 4}, double(i)), 2); }, {.verify = true}));
    CHECK_NOTHROW(batch_map(three,
                            [](int i) {
                              Tensor x = full({2, 4}, double(i));
                              return scaled_dot_product_attention(x, x, x);
                            },
                            {.verify = true}));
    CHECK_NOTHROW(batch_map(three,
                            [](int i) {
                              return layer_norm(full({2, 4}, double(i)), {4}, ones({4}), ones({4}));
                            },
                            {.verify = true}));
  };
  check_all();
  {
    auto scope = debug::detect_anomaly();
    check_all();
  }
  debug::Listen listen([](const debug::OpEvent&) {});
  check_all();
  debug::Profile profile;
  batch_map(three, [](int i) { return tanh(full({2}, double(i))); }, {.verify = true});
  // Calls of the verification are not the program's.
  for (const debug::ProfileRow& one : profile.rows(debug::ProfileBy::op))
    if (one.name == "tanh") CHECK(one.calls == 1);
  check_all();
}

TEST_CASE("verification accepts groups of ops with outputs that only gradients read, and of integers") {
  manual_seed(5);
  nn::LayerNorm norm(Shape{6});
  nn::LSTMCell cell(6, 4);
  std::vector<Tensor> inputs;
  for (int i = 0; i < 4; ++i) inputs.push_back(randn({1, 6}));
  for (bool recorded : {true, false}) {
    BatchReport report;
    std::optional<Tape> tape;
    if (recorded) tape.emplace();
    std::vector<Tensor> made = batch_map(inputs,
                                         [&](const Tensor& x) {
                                           Tensor y = norm(x);
                                           auto state = cell(y, {zeros({1, 4}), zeros({1, 4})});
                                           return sum(state.h) + to(sum(argmax(y, -1)), f32);
                                         },
                                         {.verify = true, .report = &report});
    CHECK(made.size() == 4);
    std::int64_t grouped = 0;
    for (const BatchedLine& line : report.lines) grouped += line.grouped;
    CHECK(grouped >= 12);
  }
}

}  // namespace reel_test
