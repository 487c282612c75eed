#include <cmath>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// Returns the index of the set of elements with which an element is normalised.
using SetOf = std::function<std::size_t(const Index&)>;

struct Statistics {
  long double sum = 0, count = 0, squares = 0;
  long double mean() const { return sum / count; }
  long double variance() const { return squares / count; }
};

std::vector<Statistics> statistics_of(const Array& x, const SetOf& set_of, std::size_t sets, bool centred) {
  std::vector<Statistics> statistics(sets);
  for_each_index(x.shape, [&](const Index& i) {
    Statistics& set = statistics[set_of(i)];
    set.sum += centred ? at(x, i) : 0;
    set.count += 1;
  });
  for_each_index(x.shape, [&](const Index& i) {
    Statistics& set = statistics[set_of(i)];
    long double away = at(x, i) - set.mean();
    set.squares += away * away;
  });
  return statistics;
}

// The weights and the place of their element for each element of x; without weights they are 1 and 0.
struct Affine {
  const Array *weight = nullptr, *bias = nullptr;
  std::function<Index(const Index&)> place;
};

Array normalised(const Array& x, const SetOf& set_of, const std::vector<Statistics>& statistics, const Affine& affine,
                 double epsilon) {
  std::vector<double> scales;
  Array y = make(x.shape, [&](const Index& i) {
    const Statistics& set = statistics[set_of(i)];
    auto standard = static_cast<double>((at(x, i) - set.mean()) / std::sqrt(set.variance() + epsilon));
    double w = affine.weight ? at(*affine.weight, affine.place(i)) : 1;
    double b = affine.bias ? at(*affine.bias, affine.place(i)) : 0;
    // The mean is off by some units of the deviation.
    scales.push_back((std::abs(standard) + 1) * std::abs(w) + std::abs(b));
    return standard * w + b;
  });
  y.scales = scales;
  return y;
}

// Roundings of the difference, the scale, two products and a sum, and half of what the sum of squares of vectors of four
// has gathered.
double bound(std::int64_t elements) { return 4 + static_cast<double>(elements) / 32; }

enum class Parameters : std::uint8_t { none, weight, both };
constexpr Parameters all_parameters[] = {Parameters::none, Parameters::weight, Parameters::both};

std::vector<Input> inputs_of(const Shape& x, const Shape& parameter, Parameters parameters) {
  std::vector<Input> inputs{{x}};
  for (int i = 0; i < static_cast<int>(parameters); ++i) inputs.push_back({parameter});
  return inputs;
}

Affine affine_of(const Arrays& x, std::function<Index(const Index&)> place) {
  return {x.size() > 1 ? &x[1] : nullptr, x.size() > 2 ? &x[2] : nullptr, std::move(place)};
}

std::string name_of_row(const std::string& op, const Shape& x, Parameters parameters) {
  return op + to_string(x) + " with " + std::to_string(static_cast<int>(parameters)) + " parameters";
}

void add_over_last(std::vector<Row>& rows, const Shape& shape, int axes, Parameters parameters, bool centred) {
  Shape last;
  for (int i = shape.rank() - axes; i < shape.rank(); ++i) last.push_back(shape[i]);
  double epsilon = 1e-3;
  auto reference = [=](const Arrays& x) {
    auto tail = [=](const Index& i) { return Index(i.end() - axes, i.end()); };
    auto row_of = [=](const Index& i) {
      std::size_t row = 0;
      for (int axis = 0; axis < shape.rank() - axes; ++axis)
        row = row * static_cast<std::size_t>(shape[axis]) + static_cast<std::size_t>(i[static_cast<std::size_t>(axis)]);
      return row;
    };
    std::size_t count = 1;
    for (int axis = 0; axis < shape.rank() - axes; ++axis) count *= static_cast<std::size_t>(shape[axis]);
    return normalised(x[0], row_of, statistics_of(x[0], row_of, count, centred), affine_of(x, tail), epsilon);
  };
  auto run = [=](std::span<const Tensor> x) {
    NormaliseOptions options{.epsilon = epsilon};
    if (!centred) return x.size() > 1 ? rms_norm(x[0], last, x[1], options) : rms_norm(x[0], last, options);
    if (x.size() == 3) return layer_norm(x[0], last, x[1], x[2], options);
    return x.size() == 2 ? layer_norm(x[0], last, x[1], options) : layer_norm(x[0], last, options);
  };
  rows.push_back({.name = name_of_row(centred ? "layer_norm" : "rms_norm", shape, parameters),
                  .run = run,
                  .inputs = inputs_of(shape, last, parameters),
                  .reference = reference,
                  .ulps = bound(last.numel()),
                  .reorders = true,
                  .attributes = {{"epsilon", {epsilon}}, {"axes", {static_cast<double>(axes)}}}});
}

// The channel of an element.
Index channel_of(const Index& i, bool last) { return {last ? i.back() : i[1]}; }

struct Groups {
  Shape shape;
  std::int64_t groups;  // 0: each channel is one, of instance_norm
  bool last = false;
};

void add_by_group(std::vector<Row>& rows, const Groups& c, Parameters parameters) {
  std::int64_t channels = c.last ? c.shape[-1] : c.shape[1];
  std::int64_t groups = c.groups > 0 ? c.groups : channels;
  double epsilon = 1e-3;
  reel::Layout layout = c.last ? reel::Layout::nhwc : reel::Layout::nchw;
  auto reference = [=](const Arrays& x) {
    auto set_of = [=](const Index& i) {
      return static_cast<std::size_t>(i[0] * groups + channel_of(i, c.last)[0] / (channels / groups));
    };
    auto statistics = statistics_of(x[0], set_of, static_cast<std::size_t>(c.shape[0] * groups), true);
    return normalised(x[0], set_of, statistics, affine_of(x, [=](const Index& i) { return channel_of(i, c.last); }),
                      epsilon);
  };
  auto run = [=](std::span<const Tensor> x) {
    GroupNormOptions options{.epsilon = epsilon, .layout = layout};
    if (c.groups == 0) return x.size() > 1 ? instance_norm(x[0], x[1], x[2], options) : instance_norm(x[0], options);
    return x.size() > 1 ? group_norm(x[0], groups, x[1], x[2], options) : group_norm(x[0], groups, options);
  };
  rows.push_back(
      {.name =
           name_of_row(c.groups > 0 ? "group_norm" : "instance_norm", c.shape, parameters) + (c.last ? " nhwc" : ""),
       .run = run,
       .inputs = inputs_of(c.shape, {channels}, parameters),
       .reference = reference,
       .ulps = bound(c.shape.numel()),
       .reorders = true,
       .attributes = {{"epsilon", {epsilon}}, {"groups", {static_cast<double>(groups)}}, {"last", {c.last * 1.0}}}});
}

struct Batch {
  Shape shape;
  bool training, last = false;
};

void add_by_channel(std::vector<Row>& rows, const Batch& c, Parameters parameters) {
  std::int64_t channels = c.last ? c.shape[-1] : c.shape[1];
  BatchNormOptions options{
      .training = c.training, .epsilon = 1e-3, .layout = c.last ? reel::Layout::nhwc : reel::Layout::nchw};
  auto running = [=](double step, double start) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < channels; ++i) numbers.push_back(start + step * static_cast<double>(i % 5));
    return numbers;
  };
  std::vector<double> means = running(0.25, -0.5), variances = running(0.5, 0.75);
  auto reference = [=](const Arrays& x) {
    auto set_of = [=](const Index& i) { return static_cast<std::size_t>(channel_of(i, c.last)[0]); };
    auto statistics = statistics_of(x[0], set_of, static_cast<std::size_t>(channels), true);
    for (std::size_t i = 0; !c.training && i < statistics.size(); ++i)
      statistics[i] = {.sum = means[i], .count = 1, .squares = variances[i]};
    return normalised(x[0], set_of, statistics, affine_of(x, [=](const Index& i) { return channel_of(i, c.last); }),
                      options.epsilon);
  };
  auto run = [=](std::span<const Tensor> x) {
    auto given = [&](const std::vector<double>& numbers) {
      return to(tensor(std::span<const double>(numbers), {channels}), x[0].dtype());
    };
    Tensor mean = given(means), variance = given(variances);
    return x.size() > 1 ? batch_norm(x[0], x[1], x[2], mean, variance, options)
                        : batch_norm(x[0], mean, variance, options);
  };
  rows.push_back({.name = name_of_row("batch_norm", c.shape, parameters) + (c.training ? " training" : "") +
                          (c.last ? " nhwc" : ""),
                  .run = run,
                  .inputs = inputs_of(c.shape, {channels}, parameters),
                  .reference = reference,
                  .ulps = bound(c.shape.numel()),
                  .reorders = true,
                  .attributes = {{"epsilon", {options.epsilon}},
                                 {"training", {c.training * 1.0}},
                                 {"last", {c.last * 1.0}},
                                 {"mean", means},
                                 {"variance", variances}}});
}

// Adds rows of evaluation, which have gradients of the running statistics, too.
void add_evaluation(std::vector<Row>& rows, const Shape& shape) {
  Shape channels{shape[1]};
  auto reference = [=](const Arrays& x) {
    auto set_of = [](const Index& i) { return static_cast<std::size_t>(i[1]); };
    std::vector<Statistics> statistics;
    for (std::size_t i = 0; i < x[3].values.size(); ++i)
      statistics.push_back({.sum = x[3].values[i], .count = 1, .squares = x[4].values[i]});
    return normalised(x[0], set_of, statistics, {&x[1], &x[2], [](const Index& i) { return channel_of(i, false); }},
                      1e-5);
  };
  rows.push_back({.name = "batch_norm" + to_string(shape) + " by given statistics",
                  .run = [](auto x) { return batch_norm(x[0], x[1], x[2], x[3], x[4]); },
                  .inputs = {{shape}, {channels}, {channels}, {channels}, {channels, Fill::positive}},
                  .reference = reference,
                  .ulps = 8,
                  .reorders = true});
}

void add_last_axes(std::vector<Row>& rows) {
  for (bool centred : {true, false})
    for (Parameters parameters : all_parameters) {
      if (!centred && parameters == Parameters::both) continue;
      add_over_last(rows, {3, 5}, 1, parameters, centred);
      add_over_last(rows, {2, 3, 4}, 2, parameters, centred);
      add_over_last(rows, {7}, 1, parameters, centred);
      add_over_last(rows, {4, 1}, 1, parameters, centred);
      add_over_last(rows, {0, 3}, 1, parameters, centred);
      add_over_last(rows, {3, 0}, 1, parameters, centred);
      add_over_last(rows, {2, 37}, 1, parameters, centred);
      add_over_last(rows, {30, 1100}, 1, parameters, centred);
    }
}

void add_groups(std::vector<Row>& rows) {
  for (Parameters parameters : {Parameters::none, Parameters::both}) {
    for (const Groups& c :
         {Groups{{2, 4, 3}, 2}, Groups{{2, 6}, 3}, Groups{{2, 2, 2, 3}, 1, true}, Groups{{0, 4, 2}, 2},
          Groups{{3, 2, 0}, 2}, Groups{{20, 8, 9, 13}, 4}, Groups{{1, 4, 3}, 2}})
      add_by_group(rows, c, parameters);
    for (const Groups& c : {Groups{{2, 3, 4}, 0}, Groups{{2, 2, 3, 2}, 0, true}, Groups{{0, 3, 2}, 0},
                            Groups{{2, 3, 35}, 0}, Groups{{1, 3, 4}, 0}})
      add_by_group(rows, c, parameters);
  }
}

void add_batches(std::vector<Row>& rows) {
  for (bool training : {true, false})
    for (Parameters parameters : {Parameters::none, Parameters::both}) {
      for (const Shape& shape : {Shape{5, 3}, Shape{2, 3, 4}, Shape{2, 2, 2, 3}, Shape{2, 0, 3}, Shape{3, 5, 19, 83}})
        add_by_channel(rows, {shape, training}, parameters);
      add_by_channel(rows, {{2, 3, 2, 3}, training, true}, parameters);
      add_by_channel(rows, {{4, 5}, training, true}, parameters);
    }
  for (const Shape& shape : {Shape{3, 4}, Shape{2, 3, 5}, Shape{0, 3, 2}}) add_evaluation(rows, shape);
  for (const Shape& shape : {Shape{1, 3}, Shape{0, 3, 2}}) add_by_channel(rows, {shape, false}, Parameters::both);
}

void add_rows(std::vector<Row>& rows) {
  add_last_axes(rows);
  add_groups(rows);
  add_batches(rows);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (Parameters parameters : all_parameters) {
    add_over_last(rows, random_shape(random, 2, 90), 1, parameters, true);
    add_over_last(rows, random_shape(random, 3, 20), 2, parameters, true);
    if (parameters != Parameters::both) add_over_last(rows, random_shape(random, 2, 90), 1, parameters, false);
    std::int64_t groups = random_size(random, 1, 4), size = random_size(random, 2, 20);
    if (parameters == Parameters::weight) continue;
    add_by_group(rows, {{random_size(random), groups * random_size(random, 1, 5), size}, groups}, parameters);
    add_by_group(rows, {{random_size(random, 1, 9), random_size(random), size, 3}, 0, parameters == Parameters::both},
                 parameters);
    for (bool training : {true, false}) {
      add_by_channel(rows, {{random_size(random, 2), random_size(random)}, training}, parameters);
      add_by_channel(rows, {{random_size(random, 1, 9), random_size(random), size, 7}, training}, parameters);
    }
  }
  add_over_last(rows, random_shape(random, 4, 12), 2, Parameters::weight, false);
}

}  // namespace

const RowFamily normalise_rows{add_rows, add_random_rows};

}  // namespace reel_test
