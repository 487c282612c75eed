// Learns weights from which a few steps of gradient descent fit a new sine wave that is known at ten points.
//
// A task is a wave of its own amplitude (0.1 to 5) and phase (0 to π), with K points to learn from. The loss is that after
// such a step, on other points of the wave, so its gradient is one of second order: it flows through the step. Beside it a
// network of the same size learns all waves jointly, and takes the same steps from there.
//
// Paper: Finn, Abbeel and Levine, Model-agnostic meta-learning for fast adaptation of deep networks (2017), section 5.1.
// Command: tools/run maml
// Result: after 35 s the squared error of new waves is 0.42 after one step and 0.17 after five, of joint training 2.42 and
//         1.92, of a constant guess 4.25 (seed 1; seeds 2 and 3: 0.43 and 0.18, 0.36 and 0.13; one core with AVX-512).

#include <cmath>
#include <numbers>
#include <ranges>

#include "training.h"

using namespace reel;

/// y = f(x), x (N, 1).
struct Net : nn::Module {
  nn::Linear first, second, last;

  Net(nn::Module& parent, std::string_view name, std::int64_t size)
      : first(*this, "first", 1, size), second(*this, "second", size, size), last(*this, "last", size, 1) {
    join(parent, name);
  }
  Tensor operator()(const Tensor& x) const { return last(relu(second(relu(first(x))))); }
};

struct Nets : nn::Module {
  Net maml, joint;

  explicit Nets(std::int64_t size) : maml(*this, "maml", size), joint(*this, "joint", size) {}
};

/// Points of a wave, (K, 1) each.
struct Points {
  Tensor x, y;
};

/// A wave: points to learn from, and others.
struct Task {
  Points known, others;
};

/// ∂L/∂w of the mean squared error on points. An open tape records how it is computed.
std::vector<Tensor> gradients_on(const Net& net, const std::vector<NamedTensor>& weights, const Points& points) {
  std::vector<Tensor> values;
  Tape tape;
  for (const NamedTensor& weight : weights) tape.watch(values.emplace_back(weight.tensor));
  return tape.gradient(mse_loss(nn::functional_call(net, weights, points.x), points.y), values);
}

/// w ← w − α ∂L/∂w, as often as asked for, from the network's weights.
std::vector<NamedTensor> adapt(const Net& net, const Points& known, int steps, double rate) {
  std::vector<NamedTensor> weights = net.named_parameters();
  for (int i = 0; i < steps; ++i) {
    std::vector<Tensor> gradients = gradients_on(net, weights, known);
    for (std::size_t k = 0; k < weights.size(); ++k) weights[k].tensor = weights[k].tensor - rate * gradients[k];
  }
  return weights;
}

/// The loss on a wave's other points after steps on its known ones.
Tensor loss_after(const Net& net, const Task& task, int steps, double rate) {
  return mse_loss(nn::functional_call(net, adapt(net, task.known, steps, rate), task.others.x), task.others.y);
}

struct Options : samples::RunOptions {
  std::int64_t tasks = 5000, points = 10, size = 40;
  int steps = 1;
  double rate = 0.01;
};

Points draw_points(double amplitude, double phase, std::int64_t count, Generator& generator) {
  Tensor x = rand({count, 1}, {.generator = &generator}) * 10 - 5;
  return {x, amplitude * sin(x - phase)};
}

Task draw_task(std::int64_t known, std::int64_t others, Generator& generator) {
  double amplitude = 0.1 + 4.9 * rand({}, {.generator = &generator}).item();
  double phase = std::numbers::pi * rand({}, {.generator = &generator}).item();
  return {draw_points(amplitude, phase, known, generator), draw_points(amplitude, phase, others, generator)};
}

/// A wave from a file: the first points are the known ones.
Task read_task(const std::string& path, std::int64_t known) {
  std::vector<float> x, y;
  for (const data::Row& row : data::read_csv(path))
    x.push_back(static_cast<float>(row.number("x"))), y.push_back(static_cast<float>(row.number("y")));
  if (std::ssize(x) <= known)
    throw std::runtime_error(fmt::format("'{}' has {} points, of which {} are to learn from and none is left.",
                                         io::printable(path), x.size(), known));
  Points all{reshape(tensor(x), {-1, 1}), reshape(tensor(y), {-1, 1})};
  return {{slice(all.x, 0, 0, known), slice(all.y, 0, 0, known)}, {slice(all.x, 0, known), slice(all.y, 0, known)}};
}

/// The mean loss of tasks after some steps, and half of the width of its 95 % interval.
std::pair<double, double> evaluate(const Net& net, const std::vector<Task>& tasks, int steps, double rate) {
  double sum = 0, squares = 0, count = static_cast<double>(tasks.size());
  for (const Task& task : tasks) {
    double loss = loss_after(net, task, steps, rate).item();
    sum += loss;
    squares += loss * loss;
  }
  double mean = sum / count;
  return {mean, 1.96 * std::sqrt(std::max(0.0, squares / count - mean * mean) / count)};
}

void draw_fit(const Options& options, const Nets& nets, const Task& task) {
  Tensor order = argsort(flatten(task.others.x));
  Tensor x = take(task.others.x, order, 0);
  auto numbers = [](const Tensor& column) { return to(flatten(column), f64).to_vector<double>(); };
  logging::LinePlot fit{.title = fmt::format("A wave of {} known points", task.known.x.size(0)),
                        .curves = {{"wave", numbers(x), numbers(take(task.others.y, order, 0))}}};
  for (int steps : {0, 1, 5})
    fit.curves.push_back(
        {fmt::format("after {} steps", steps), numbers(x),
         numbers(nn::functional_call(nets.maml, adapt(nets.maml, task.known, steps, options.rate), x))});
  logging::Writer(options.log + "/fit").figure("fit", fit, 0);
  logging::plot(options.log, options.log + "/curves.html");
}

void run(Options options) {
  manual_seed(options.seed);
  io::Contents file = samples::load(options, "maml");
  if (!options.load.empty()) options.size = std::stoll(file.metadata["size"]);
  std::optional<Task> test;
  if (!options.test.empty()) test = read_task(options.test, options.points);
  Nets nets(options.size);
  if (!options.load.empty()) io::load_into(nets, file);

  optim::Adam adam(nets.parameters(), {.learning_rate = options.learning_rate});
  std::int64_t steps = options.epochs * ((options.tasks + options.batch - 1) / options.batch);
  optim::Scheduler scheduler(adam, optim::cosine({.steps = std::max<std::int64_t>(steps, 1)}));
  auto make = [&](std::int64_t, Generator& random) { return draw_task(options.points, options.points, random); };
  auto tasks = data::transformed(std::views::iota(std::int64_t{0}, options.tasks), make);
  auto as_they_are = [](std::vector<Task> batch) { return batch; };
  data::Loader loader(tasks, as_they_are, {.batch_size = options.batch, .seed = options.seed});
  Generator generator(options.seed + 1);
  std::vector<Task> dev, held_back;
  for (int i = 0; i < 100; ++i) dev.push_back(draw_task(options.points, 50, generator));
  for (int i = 0; i < 600; ++i) held_back.push_back(draw_task(options.points, 50, generator));

  auto step = [&](const std::vector<Task>& batch) {
    Tape tape;
    std::vector<Tensor> losses, x, y;
    for (const Task& task : batch) {
      losses.push_back(loss_after(nets.maml, task, options.steps, options.rate));
      x.push_back(task.others.x), y.push_back(task.others.y);
    }
    Tensor loss = mean(stack(losses)), jointly = mse_loss(nets.joint(concat(x)), concat(y));
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss + jointly);
    adam.step();
    adam.zero_grad();
    scheduler.step();
    return value;
  };
  std::string opening = fmt::format("{} tasks an epoch, {} parameters", options.tasks, nets.maml.parameter_count());
  io::Metadata about{{"sample", "maml"}, {"size", std::to_string(options.size)}};
  samples::Run run{options, nets, adam, "tasks", opening, about, {{"scheduler", scheduler}}};
  samples::train(run, loader, step, [&] {
    double after = evaluate(nets.maml, dev, 5, options.rate).first;
    return samples::Reached{-after, fmt::format("dev {:.3f} after 5 steps", after)};
  });

  std::vector<std::vector<std::string>> rows{{"squared error", "before", "1 step", "5 steps"}};
  auto add_row = [&](const char* name, const Net& net, const std::vector<Task>& set) {
    rows.push_back({name});
    for (int count : {0, 1, 5}) {
      auto [mean, half] = evaluate(net, set, count, options.rate);
      rows.back().push_back(set.size() > 1 ? fmt::format("{:.3f} ± {:.3f}", mean, half) : fmt::format("{:.3f}", mean));
    }
  };
  if (test) add_row("test", nets.maml, {*test});
  add_row("joint training", nets.joint, held_back);
  add_row("meta-learning", nets.maml, held_back);
  samples::print_results(rows);
  if (!options.log.empty()) draw_fit(options, nets, test ? *test : held_back[0]);
}

int main(int argc, char** argv) {
  Options options;
  options.epochs = 150;
  options.batch = 25;
  samples::CommandLine line("Learns weights from which a few steps of gradient descent fit a new sine wave.", "maml");
  samples::add_common_options(line, options, "tasks",
                              "CSV file of a wave, with columns x and y, whose first points are to learn from");
  line.add_option("--tasks", options.tasks, "waves an epoch", samples::at_least(1));
  line.add_option("--points", options.points, "points of a wave to learn from", samples::at_least(1));
  line.add_option("--size", options.size, "units of each of the two hidden layers", samples::at_least(1));
  line.add_option("--steps", options.steps, "steps on a wave while training", samples::at_least(1));
  line.add_option("--rate", options.rate, "step size on a wave", samples::at_least(0));
  return line.run(argc, argv, [&] { run(options); });
}
