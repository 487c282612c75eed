#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

using Floats = std::vector<float>;

nn::Packed of_lengths(const std::vector<std::int64_t>& lengths, const Tensor& elements) { return {elements, lengths}; }

// Lengths 2, 0, 3.
nn::Packed three() {
  return of_lengths({2, 0, 3}, tensor({{1.f, 10.f}, {3.f, 2.f}, {-5.f, -1.f}, {-4.f, -6.f}, {-9.f, -1.f}}));
}

}  // namespace

TEST_CASE("pack puts sequences one behind the other, and gives them back") {
  Tensor first = randn({3, 2}), none = randn({0, 2}), last = randn({1, 2});
  nn::Packed packed = nn::pack({first, none, last});
  CHECK(packed.elements.shape() == Shape{4, 2});
  CHECK(packed.lengths == std::vector<std::int64_t>{3, 0, 1});
  CHECK(packed.size() == 3);
  CHECK(packed.longest() == 3);
  std::vector<Tensor> back = packed.sequences();
  CHECK(back[0].to_vector<float>() == first.to_vector<float>());
  CHECK(back[1].shape() == Shape{0, 2});
  CHECK(back[2].to_vector<float>() == last.to_vector<float>());
  CHECK(packed.sequence_of_elements().to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 0, 0, 2});
}

TEST_CASE("Packed is padded and packed again") {
  nn::Packed packed = three();
  Tensor padded = packed.padded({.value = 7});
  CHECK(padded.shape() == Shape{3, 3, 2});
  CHECK(padded.to_vector<float>() == Floats{1, 10, 7, 7, -5, -1, 3, 2, 7, 7, -4, -6, 7, 7, 7, 7, -9, -1});
  CHECK(to(packed.mask(), f32).to_vector<float>() == Floats{1, 0, 1, 1, 0, 1, 0, 0, 1});
  nn::Packed again = nn::pack(padded, tensor<std::int64_t>({2, 0, 3}));
  CHECK(again.lengths == packed.lengths);
  CHECK(again.elements.to_vector<float>() == packed.elements.to_vector<float>());
  CHECK(nn::pack(padded, tensor<std::int32_t>({0, 1, 2})).elements.to_vector<float>() == Floats{7, 7, -5, -1, -4, -6});
  nn::Packed symbols = of_lengths({1, 2}, tensor<std::int64_t>({4, 5, 6}));
  CHECK(symbols.padded({.value = -1}).to_vector<std::int64_t>() == std::vector<std::int64_t>{4, 5, -1, 6});
}

TEST_CASE("Packed without any element has shapes that fit") {
  nn::Packed empty = of_lengths({0, 0}, zeros({0, 3}));
  CHECK(empty.padded().shape() == Shape{0, 2, 3});
  CHECK(empty.mask().shape() == Shape{0, 2});
  CHECK(empty.sequences().size() == 2);
  CHECK(nn::masked_mean(empty).to_vector<float>() == Floats(6));
  CHECK(nn::masked_max(empty).to_vector<float>() == Floats(6));
  nn::Packed none = of_lengths({}, zeros({0, 3}));
  CHECK(none.padded().shape() == Shape{0, 0, 3});
  CHECK(nn::masked_mean(none).shape() == Shape{0, 3});
  CHECK(nn::masked_max(none).shape() == Shape{0, 3});
  CHECK(none.sequences().empty());
}

TEST_CASE("other elements take the place of the elements") {
  nn::Packed doubled = three().with(three().elements * 2);
  CHECK(doubled.elements.to_vector<float>()[1] == 20);
  CHECK_THAT(error_of<ShapeError>([] {
               three().with(ones({4, 2}));
             }),
             contains("elements (4, 2) f32 are not those of 3 sequences with 5 elements together"));
}

TEST_CASE("masked mean and max are those of each sequence, and 0 of nothing") {
  CHECK(nn::masked_mean(three()).to_vector<float>() == Floats{2, 6, 0, 0, -6, -8.f / 3});
  CHECK(nn::masked_max(three()).to_vector<float>() == Floats{3, 10, 0, 0, -4, -1});
  nn::Packed scalars = of_lengths({1, 2}, tensor({4.f, -1.f, -3.f}));
  CHECK(nn::masked_mean(scalars).to_vector<float>() == Floats{4, -2});
  CHECK(nn::masked_max(scalars).to_vector<float>() == Floats{4, -1});
  nn::Packed matrices = of_lengths({2}, reshape(arange(8.0), {2, 2, 2}));
  CHECK(nn::masked_mean(matrices).to_vector<float>() == Floats{2, 3, 4, 5});
  CHECK(nn::masked_max(matrices).shape() == Shape{1, 2, 2});
}

TEST_CASE("masked mean of halves sums and divides in f32, and rounds once") {
  manual_seed(5);
  for (DType dtype : {f16, bf16}) {
    for (double size : {1.0, 3e4, 1e-6}) {
      nn::Packed packed = of_lengths({1500, 0, 70000}, to((rand({71500, 2}) + 0.5) * size, dtype));
      nn::Packed wide = packed.with(to(packed.elements, f32));
      Tensor found = nn::masked_mean(packed);
      CHECK(found.dtype() == dtype);
      CHECK(to(found, f32).to_vector<float>() == to(to(nn::masked_mean(wide), dtype), f32).to_vector<float>());
      Tensor padded = nn::masked_mean(packed.padded(), packed.mask());
      CHECK(padded.dtype() == dtype);
      Tensor expected = to(to(nn::masked_mean(wide.padded(), wide.mask()), dtype), f32);
      CHECK(to(padded, f32).to_vector<float>() == expected.to_vector<float>());
      CHECK(max(expected).item() == Approx(size).epsilon(0.1));
    }
  }
}

TEST_CASE("masked mean and max of padded sequences do not look at the padding") {
  Tensor mask = three().mask();
  for (float padding : {0.f, 100.f, not_a_number, inf}) {
    Tensor padded = three().padded({.value = padding});
    CHECK(nn::masked_mean(padded, mask).to_vector<float>() == Floats{2, 6, 0, 0, -6, -8.f / 3});
    CHECK(nn::masked_max(padded, mask).to_vector<float>() == Floats{3, 10, 0, 0, -4, -1});
    Tape tape;
    tape.watch(padded);
    Tensor both = sum(nn::masked_mean(padded, mask)) + sum(nn::masked_max(padded, mask));
    Tensor gradient = tape.gradient(both, padded);
    CHECK(sum(where(unsqueeze(mask, 2), 0.0, abs(gradient))).item() == 0);
    CHECK(sum(gradient).item() == Approx(8));
  }
  // Along another axis, with the mask's axes up to that one.
  Tensor x = tensor({{1.f, 2.f, 9.f}, {4.f, 9.f, 9.f}});
  Tensor seen = tensor({{true, true, false}, {true, false, false}});
  CHECK(nn::masked_mean(x, seen, 1).to_vector<float>() == Floats{1.5, 4});
  CHECK(nn::masked_max(x, seen, -1).to_vector<float>() == Floats{2, 4});
}

TEST_CASE("the largest of infinities is that of those that take part") {
  nn::Packed packed = of_lengths({1, 2}, tensor({-inf, -inf, 2.f}));
  CHECK(nn::masked_max(packed).to_vector<float>() == Floats{-inf, 2});
  CHECK(nn::masked_max(tensor({5.f, -inf}), tensor({false, true})).item() == -inf);
  for (const Tensor& x : {tensor({1.f, not_a_number, 2.f}), tensor({not_a_number, 1.f, 2.f})})
    CHECK(std::isnan(nn::masked_max(of_lengths({3}, x)).item()));
}

TEST_CASE("the gradient of a largest element goes to the first of equals") {
  nn::Packed packed = of_lengths({1, 3, 0, 2}, tensor({{1.f}, {5.f}, {7.f}, {7.f}, {2.f}, {2.f}}));
  Tape tape;
  tape.watch(packed.elements);
  CHECK(tape.gradient(sum(nn::masked_max(packed)), packed.elements).to_vector<float>() == Floats{1, 0, 1, 0, 1, 0});
}

TEST_CASE("masked mean and max of many sequences equal those of each alone") {
  manual_seed(3);
  std::vector<std::int64_t> lengths{4, 0, 9, 1, 1, 30, 2, 0};
  nn::Packed packed = of_lengths(lengths, randn({47, 5}));
  std::vector<Tensor> sequences = packed.sequences();
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] == 0) continue;
    auto row = static_cast<std::int64_t>(b);
    CHECK(select(nn::masked_max(packed), 0, row).to_vector<float>() == max(sequences[b], 0).to_vector<float>());
    CHECK(max(abs(select(nn::masked_mean(packed), 0, row) - mean(sequences[b], 0))).item() < 1e-6);
  }
}

TEST_CASE("gradients of what is packed, padded, and reduced agree with differences") {
  manual_seed(2);
  auto check = [](auto f, const std::vector<Tensor>& inputs) {
    auto report = debug::gradcheck(f, inputs);
    INFO(report.text);
    CHECK(report);
    auto second = debug::gradgradcheck(f, inputs);
    INFO(second.text);
    CHECK(second);
  };
  auto both = [](const nn::Packed& packed) {
    Tensor bent = sin(packed.elements);
    return concat({nn::masked_mean(packed.with(bent)), nn::masked_max(packed.with(bent))});
  };
  auto draw = [](const Shape& shape) { return randn(shape, {.dtype = f64}); };
  check([&](std::span<const Tensor> in) { return both({in[0], {2, 0, 3, 1}}); }, {draw({6, 2})});
  check([&](std::span<const Tensor> in) { return both(nn::pack(in)); }, {draw({2, 2}), draw({0, 2}), draw({3, 2})});
  check(
      [&](std::span<const Tensor> in) {
        return both(nn::pack(in[0], tensor<std::int64_t>({1, 3})));
      },
      {draw({3, 2, 2})});
  check([&](std::span<const Tensor> in) { return sin(nn::Packed{in[0], {2, 0, 3}}.padded()); }, {draw({5, 2})});
}

TEST_CASE("what cannot be packed or reduced is an error that says so") {
  int line = __LINE__ + 1;
  std::string text = error_of<ShapeError>([] { nn::masked_mean({ones({3}), {1, 1}}); });
  CHECK(text == "masked_mean: elements (3,) f32 are not those of 2 sequences with 2 elements together; at " +
                    to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<ShapeError>([] { nn::masked_max({ones({1}), {2, -1}}); }), contains("the length -1"));
  CHECK_THAT(error_of<Error>([] { nn::masked_max({Tensor(), {}}); }), contains("undefined"));
  CHECK_THAT(error_of<DTypeError>([] { nn::masked_mean({tensor<std::int64_t>({1}), {1}}); }), contains("floating"));
  CHECK_THAT(error_of<ShapeError>([] { nn::pack({}); }), contains("at least one sequence"));
  CHECK_THAT(error_of<ShapeError>([] { nn::pack({full({}, 1.0)}); }), contains("cannot be () f32"));
  CHECK_THAT(error_of<ShapeError>([] { nn::pack({ones({1, 2}), ones({1, 3})}); }), contains("concat"));
  Tensor padded = ones({3, 2, 4});
  CHECK_THAT(error_of<IndexError>([&] {
               nn::pack(padded, tensor<std::int64_t>({1, 4}));
             }),
             contains("pack: the length 4 is not in [0, 3]"));
  CHECK_THAT(error_of<ShapeError>([&] { nn::pack(padded, tensor<std::int64_t>({1})); }), contains("one for each"));
  CHECK_THAT(error_of<DTypeError>([&] { nn::pack(padded, ones({2})); }), contains("lengths are i32 or i64"));
  CHECK_THAT(error_of<ShapeError>([&] {
               nn::masked_mean(padded, ones({2, 3}) > 0);
             }),
             contains("the mask (2, 3) has not the first axes of x (3, 2, 4), up to axis 0"));
  CHECK_THAT(error_of<ShapeError>([&] { nn::masked_max(padded, ones({3}) > 0, 1); }), contains("up to axis 1"));
  CHECK_THAT(error_of<DTypeError>([&] { nn::masked_max(padded, ones({3, 2})); }), contains("the mask is bool"));
  CHECK_THAT(error_of<ShapeError>([&] { nn::masked_max(padded, ones({3, 2}) > 0, 3); }), contains("axis 3"));
}

TEST_CASE("whatever takes packed sequences refuses lengths that are not those of the elements") {
  nn::LSTM lstm(4, 3);
  nn::GRU gru(4, 3);
  nn::RNN rnn(4, 3);
  nn::Conv1d convolution(4, 3, 2);
  nn::CRF crf(4);
  nn::SPINN spinn(2);
  nn::GRUCell cell(4, 3);
  using Use = std::function<void(const nn::Packed&)>;
  const std::pair<const char*, Use> uses[] = {
      {"with", [](auto& x) { x.with(x.elements); }},
      {"sequences", [](auto& x) { x.sequences(); }},
      {"padded", [](auto& x) { x.padded(); }},
      {"mask", [](auto& x) { x.mask(); }},
      {"sequence_of_elements", [](auto& x) { x.sequence_of_elements(); }},
      {"masked_mean", [](auto& x) { nn::masked_mean(x); }},
      {"masked_max", [](auto& x) { nn::masked_max(x); }},
      {"LSTM", [&](auto& x) { lstm(x); }},
      {"GRU", [&](auto& x) { gru(x); }},
      {"RNN", [&](auto& x) { rnn(x); }},
      {"Conv1d", [&](auto& x) { convolution(x); }},
      {"unroll", [&](auto& x) { nn::unroll(cell, x); }},
      {"CRF", [&](auto& x) { crf.decode(x); }},
      {"SPINN",
       [&](auto& x) { spinn(x, std::vector<std::vector<nn::Transition>>(x.lengths.size(), {nn::Transition::shift})); }},
  };
  // The last add up to 2 in 64 bits.
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> bad[] = {{1}, {1, 1, 1}, {3, -1}, {}, {most, most, 4}};
  for (const auto& [name, use] : uses) {
    CAPTURE(name);
    for (const auto& lengths : bad) CHECK_THROWS_AS(use(of_lengths(lengths, ones({2, 4}))), ShapeError);
    CHECK_NOTHROW(use(of_lengths({1, 1}, ones({2, 4}))));
  }
}
