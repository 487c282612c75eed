#include <reel/autocast.h>
#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include <cmath>
#include <functional>
#include <optional>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

constexpr std::int64_t tag_count = 3;
using Tags = std::vector<std::int64_t>;

struct Field {
  nn::CRF crf;
  nn::Packed emissions;
  Tags tags;

  explicit Field(DType dtype = f64, std::vector<std::int64_t> lengths = {2, 0, 4, 1, 0, 4, 3})
      : crf(tag_count, {.initialiser = nn::normal(), .dtype = dtype}) {
    std::int64_t count = 0;
    for (std::int64_t length : lengths) count += length;
    emissions = {randn({count, tag_count}, {.dtype = dtype}), std::move(lengths)};
    for (std::int64_t i = 0; i < count; ++i) tags.push_back((i * 7 + 1) % tag_count);
  }
  Tensor tag_tensor() const { return tensor(tags); }
};

std::vector<double> doubles(const Tensor& x) { return to(x, f64).to_vector<double>(); }

// The score of tags of one sequence, from its definition.
double score(const nn::CRF& crf, const Tensor& emissions, const Tags& tags) {
  if (tags.empty()) return 0;
  std::vector<double> e = doubles(emissions), transitions = doubles(crf.transitions), start = doubles(crf.start),
                      end = doubles(crf.end);
  auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  double total = start[at(tags.front())] + end[at(tags.back())];
  for (std::size_t t = 0; t < tags.size(); ++t) {
    total += e[t * tag_count + at(tags[t])];
    if (t > 0) total += transitions[at(tags[t - 1] * tag_count + tags[t])];
  }
  return total;
}

// Calls f with every sequence of tags of a length.
void for_each_tagging(std::int64_t length, const std::function<void(const Tags&)>& f) {
  Tags tags(static_cast<std::size_t>(length));
  auto count = static_cast<std::int64_t>(std::pow(tag_count, length));
  for (std::int64_t number = 0; number < count; ++number) {
    std::int64_t rest = number;
    for (std::int64_t& tag : tags) {
      tag = rest % tag_count;
      rest /= tag_count;
    }
    f(tags);
  }
}

}  // namespace

TEST_CASE("a CRF's partition and likelihood are those that all taggings add up to, for any lengths") {
  manual_seed(1);
  for (DType dtype : {f64, f32}) {
    Field field(dtype);
    std::vector<double> partition = doubles(field.crf.log_partition(field.emissions)),
                        likelihood = doubles(field.crf(field.emissions, field.tag_tensor()));
    REQUIRE(partition.size() == field.emissions.lengths.size());
    REQUIRE(likelihood.size() == partition.size());
    auto tag = field.tags.begin();
    std::vector<Tensor> sequences = field.emissions.sequences();
    for (std::size_t b = 0; b < partition.size(); ++b) {
      double sum = 0;
      for_each_tagging(field.emissions.lengths[b],
                       [&](const Tags& tags) { sum += std::exp(score(field.crf, sequences[b], tags)); });
      Tags own(tag, tag + field.emissions.lengths[b]);
      tag += field.emissions.lengths[b];
      double tolerance = dtype == f64 ? 1e-13 : 1e-5;
      CHECK(partition[b] == Approx(std::log(sum)).epsilon(tolerance).margin(tolerance));
      CHECK(likelihood[b] ==
            Approx(score(field.crf, sequences[b], own) - std::log(sum)).epsilon(tolerance).margin(tolerance));
    }
  }
}

TEST_CASE("a CRF decodes the tags with the largest score of all, and says it") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    manual_seed(seed);
    Field field;
    nn::CRFTags found = field.crf.decode(field.emissions);
    CHECK(found.tags.lengths == field.emissions.lengths);
    std::vector<Tensor> sequences = field.emissions.sequences(), tags = found.tags.sequences();
    for (std::size_t b = 0; b < sequences.size(); ++b) {
      double best = -INFINITY;
      for_each_tagging(field.emissions.lengths[b],
                       [&](const Tags& tags) { best = std::max(best, score(field.crf, sequences[b], tags)); });
      CHECK(score(field.crf, sequences[b], tags[b].to_vector<std::int64_t>()) == Approx(best).margin(1e-12));
      CHECK(doubles(found.scores)[b] == Approx(best).margin(1e-12));
    }
  }
}

TEST_CASE("of equal taggings a CRF takes the lower number") {
  nn::CRF crf(tag_count, {.initialiser = nn::constant(0)});
  CHECK(crf.decode({zeros({3, tag_count}), {3}}).tags.elements.to_vector<std::int64_t>() == Tags{0, 0, 0});
}

TEST_CASE("gradients of a CRF's likelihood are right, also where every sequence is short") {
  for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{2, 0, 3}, {1, 1}}) {
    manual_seed(2);
    Field field(f64, lengths);
    Tensor e = field.emissions.elements;
    debug::GradcheckReport report = debug::gradcheck(
        [&](std::span<const Tensor> x) { return field.crf(field.emissions.with(x[0]), field.tag_tensor()); },
        std::span(&e, 1));
    CAPTURE(report.text);
    CHECK(report.agrees);
    for (nn::Parameter* parameter : {&field.crf.transitions, &field.crf.start, &field.crf.end}) {
      Tape tape;
      Tensor gradient = tape.gradient(sum(field.crf(field.emissions, field.tag_tensor())), *parameter);
      std::vector<double> found = doubles(gradient);
      for (std::int64_t i = 0; i < parameter->numel(); ++i) {
        NoRecord pause;
        auto shifted = [&](double step) {
          parameter->write<double>()[i] += step;
          double value = sum(field.crf(field.emissions, field.tag_tensor())).item();
          parameter->write<double>()[i] -= step;
          return value;
        };
        CHECK(found[static_cast<std::size_t>(i)] == Approx((shifted(1e-5) - shifted(-1e-5)) / 2e-5).margin(1e-8));
      }
    }
  }
}

TEST_CASE("the gradient of a CRF's partition by the emissions are probabilities") {
  manual_seed(3);
  Field field;
  Tape tape;
  tape.watch(field.emissions.elements);
  Tensor marginals = tape.gradient(sum(field.crf.log_partition(field.emissions)), field.emissions.elements);
  for (double one : doubles(sum(marginals, 1))) CHECK(one == Approx(1).epsilon(1e-12));
  CHECK(min(marginals).item() > 0);
}

TEST_CASE("a CRF of large scores stays finite") {
  nn::CRF crf(tag_count, {.initialiser = nn::constant(0)});
  Tensor e = full({4, tag_count}, 2000.0) * tensor({1.f, -1.f, 0.5f});
  Tensor likelihood = crf({e, {4}}, tensor(Tags{0, 0, 0, 0}));
  CHECK(likelihood.item() == Approx(0).margin(1e-3));
  CHECK(crf.log_partition({e, {4}}).item() == Approx(8000));
}

TEST_CASE("scores of a CRF of halves are added up in f32, and its gradients are near the exact ones") {
  manual_seed(7);
  std::int64_t length = GENERATE(4, 100, 1000);
  struct Case {
    std::string name;
    DType parameters, emissions;
    bool casts;
  };
  for (const Case& c : std::vector<Case>{{"bf16", bf16, bf16, false},
                                         {"f16", f16, f16, false},
                                         {"f32 with emissions of bf16", f32, bf16, false},
                                         {"f32 within autocast", f32, f32, true},
                                         {"f32 within autocast with emissions of bf16", f32, bf16, true}}) {
    INFO(c.name << ", length " << length);
    nn::CRF crf(tag_count, {.initialiser = nn::normal(), .dtype = c.parameters}), one(1, {.dtype = c.parameters});
    nn::CRF exact = nn::clone(crf);
    exact.to(f64);
    Tensor e = to(4 * randn({length, tag_count}), c.emissions), tags = argmax(e, 1);
    std::optional<AutocastScope> scope;
    if (c.casts) scope.emplace(bf16, Location::here());
    // With one tag there is one tagging.
    CHECK(std::abs(one({slice(e, 1, 0, 1), {length}}, zeros_like(tags)).item()) <
          1e-6 * 16 * static_cast<double>(length));
    Tape tape;
    tape.watch(e);
    Tensor likelihood = crf({e, {length}}, tags), partition = crf.log_partition({e, {length}});
    CHECK(likelihood.dtype() == f32);
    CHECK(partition.dtype() == f32);
    CHECK(crf.decode({e, {length}}).scores.dtype() == f32);
    double log_z = exact.log_partition({to(stop_gradient(e), f64), {length}}).item();
    // Each step rounds sums that are as large as log Z by at most 2⁻²⁴ of it, in both terms of the difference.
    double bound = 2 * static_cast<double>(length) * std::ldexp(std::abs(log_z), -24) + 1e-6;
    CHECK(std::abs(partition.item() - log_z) < bound);
    CHECK(std::abs(likelihood.item() - exact({to(stop_gradient(e), f64), {length}}, tags).item()) < bound);
    Tensor marginals = to(tape.gradient(sum(partition), e), f64);
    // Probabilities of halves, each rounded once: to at most 2⁻⁹, in bf16. f32's have the error of α.
    CHECK(max(abs(sum(marginals, 1) - 1)).item() < tag_count * 0x1p-9 + bound);
  }
}

TEST_CASE("sequences without any element have a likelihood of 1 and no tags") {
  nn::CRF crf(tag_count);
  nn::Packed nothing{zeros({0, tag_count}), {0, 0}};
  Tape tape;
  Tensor likelihood = crf(nothing, zeros({0}, {.dtype = i64}));
  CHECK(doubles(likelihood) == std::vector<double>{0, 0});
  tape.backward(sum(likelihood));
  CHECK(max(abs(crf.transitions.grad())).item() == 0);
  CHECK(crf.decode(nothing).tags.elements.numel() == 0);
}

TEST_CASE("a CRF learns that two tags never follow each other") {
  manual_seed(4);
  nn::CRF crf(2);
  // Tags alternate; the emissions are uninformative.
  Tags tags{0, 1, 0, 1, 0, 1, 0, 1};
  nn::Packed emissions{zeros({8, 2}), {5, 3}};
  for (int step = 0; step < 200; ++step) {
    Tape tape;
    tape.backward(-mean(crf(emissions, tensor(Tags{0, 1, 0, 1, 0, 0, 1, 0}))));
    for (Tensor parameter : crf.parameters()) {
      Tensor next = stop_gradient(parameter) - parameter.grad();
      std::vector<float> values = next.to_vector<float>();
      std::copy(values.begin(), values.end(), parameter.write<float>().data());
      parameter.set_grad({});
    }
  }
  CHECK(crf.decode({zeros({8, 2}), {8}}).tags.elements.to_vector<std::int64_t>() == tags);
}

TEST_CASE("a CRF refuses what does not fit in one sentence") {
  nn::CRF crf(tag_count);
  nn::Packed emissions{zeros({2, tag_count}), {2}};
  auto text = [](auto f) { return error_of<Error>(f); };
  CHECK_THAT(text([] { nn::CRF none(0); }), contains("CRF: at least one tag is needed, not 0"));
  CHECK_THAT(text([&] { crf.decode({}); }), contains("the emissions are an undefined tensor"));
  CHECK_THAT(text([&] { crf.decode({zeros({2, 4}), {2}}); }), contains("emissions (2, 4) f32 are not (N, 3)"));
  CHECK_THAT(text([&] { crf.decode({zeros({2, 3}), {3}}); }), contains("of 1 sequences with 3 elements together"));
  CHECK_THAT(text([&] { crf.decode({zeros({2, 3}), {3, -1}}); }), contains("a sequence cannot have the length -1"));
  CHECK_THAT(text([&] { crf.decode({zeros({2, 3}, {.dtype = i64}), {2}}); }), contains("have to be floating"));
  CHECK_THAT(text([&] { crf(emissions, tensor(Tags{0, 3})); }), contains("tag 3 lies outside [0, 3)"));
  CHECK_THAT(text([&] { crf(emissions, tensor(Tags{0})); }), contains("tags (1,) i64 are not (2)"));
  CHECK_THAT(text([&] { crf(emissions, zeros({2})); }), contains("tags have to be i64, not (2,) f32"));
  CHECK_THAT(text([&] { crf(emissions, Tensor()); }), contains("the tags are an undefined tensor"));
}
