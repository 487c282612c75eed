// Learns to balance a pole on a cart by trial and error: a policy gradient with the simulator in the loop.
//
// The simulator is plain C++, and so is the loop around it, which episodes leave when they end. The tape holds the
// log-probability of every action; the loss weighs it by how much longer the episode lasted than the others of its batch.
//
// Papers: Williams, Simple statistical gradient-following algorithms for connectionist reinforcement learning (1992); Barto,
//         Sutton and Anderson, Neuronlike adaptive elements that can solve difficult learning control problems (1983), with
//         the constants and the 500 steps of Gym's CartPole-v1.
// Command: tools/run reinforce --seeds 5
// Result: the median of five agents stands for 499.5 of 500 steps after 3 s, over 100 new episodes each (seeds 1 to 5; 500.0 of
//         11 to 15 and of 21 to 25; an untrained agent: 9 steps, one that pushes by chance: 22; one core with AVX-512).

#include <cmath>
#include <numeric>
#include <ranges>

#include "training.h"

using namespace reel;

/// The logits of pushing to the left and to the right: states (N, 4) → (N, 2).
struct Policy : nn::Module {
  nn::Linear hidden{*this, "hidden", 4, 64}, output{*this, "output", 64, 2};

  Tensor operator()(const Arg& state) const {
    return call("Policy", state, [&](const Tensor& x) { return output(tanh(hidden(x))); });
  }
};

/// A pole on a cart, in metres, radians and seconds.
struct CartPole {
  double x = 0, speed = 0, angle = 0, turn = 0;

  void push(bool right) {
    constexpr double gravity = 9.8, cart = 1, pole = 0.1, half_length = 0.5, force = 10, tick = 0.02;
    double driven = ((right ? force : -force) + pole * half_length * turn * turn * std::sin(angle)) / (cart + pole);
    double inertia = half_length * (4. / 3 - pole * std::cos(angle) * std::cos(angle) / (cart + pole));
    double turning = (gravity * std::sin(angle) - std::cos(angle) * driven) / inertia;
    double pushed = driven - pole * half_length * turning * std::cos(angle) / (cart + pole);
    x += tick * speed, speed += tick * pushed, angle += tick * turn, turn += tick * turning;
  }
  bool stands() const { return std::abs(x) <= 2.4 && std::abs(angle) <= 12 * M_PI / 180; }
};

constexpr std::int64_t longest = 500;

/// The record of some episodes.
struct Episodes {
  std::vector<std::int64_t> lengths;
  std::vector<Tensor> log_probabilities;          // of the actions of each step, of the episodes that still ran
  std::vector<std::vector<std::size_t>> running;  // which those were
  std::vector<CartPole> seen;                     // of the first episode
};

/// Lets a policy act until all poles have fallen, or for 500 steps: by chance, or by what it prefers.
Episodes act(const Policy& policy, std::vector<CartPole> poles, bool by_chance) {
  Episodes all{std::vector<std::int64_t>(poles.size(), longest), {}, {}, {}};
  std::vector<std::size_t> running(poles.size());
  std::iota(running.begin(), running.end(), 0);
  for (std::int64_t t = 0; t < longest && !running.empty(); ++t) {
    std::vector<float> numbers;
    for (std::size_t i : running)
      for (double number : {poles[i].x, poles[i].speed, poles[i].angle, poles[i].turn})
        numbers.push_back(static_cast<float>(number));
    distributions::Categorical choice(policy(tensor(std::span<const float>(numbers), {std::ssize(running), 4})));
    Tensor actions = by_chance ? choice.sample() : argmax(choice.logits(), 1);
    all.log_probabilities.push_back(choice.log_prob(actions));
    all.running.push_back(running);
    if (running[0] == 0) all.seen.push_back(poles[0]);
    std::vector<std::int64_t> rights = actions.to_vector<std::int64_t>();
    for (std::size_t k = 0; k < running.size(); ++k) poles[running[k]].push(rights[k] == 1);
    std::erase_if(running, [&](std::size_t i) {
      if (poles[i].stands()) return false;
      all.lengths[i] = t + 1;
      return true;
    });
  }
  return all;
}

/// −mean(log π(a) A): A says how much longer an episode lasts, with later steps discounted, than the mean of those that run.
Tensor loss_of(const Episodes& episodes, double discount) {
  std::vector<float> advantages;
  for (std::size_t t = 0; t < episodes.running.size(); ++t) {
    std::vector<double> lasts;
    for (std::size_t i : episodes.running[t])
      lasts.push_back(1 - std::pow(discount, episodes.lengths[i] - static_cast<std::int64_t>(t)));
    double middle = std::accumulate(lasts.begin(), lasts.end(), 0.) / static_cast<double>(lasts.size());
    for (double value : lasts) advantages.push_back(static_cast<float>((value - middle) / (1 - discount)));
  }
  return -mean(concat(episodes.log_probabilities) * tensor(advantages));
}

std::vector<CartPole> draw_poles(std::int64_t count, Generator& generator) {
  std::vector<float> at = (rand({count * 4}, {.generator = &generator}) * 0.1 - 0.05).to_vector<float>();
  std::vector<CartPole> poles;
  for (std::size_t i = 0; i < at.size(); i += 4) poles.push_back({at[i], at[i + 1], at[i + 2], at[i + 3]});
  return poles;
}

std::vector<CartPole> read_poles(const std::string& path) {
  std::vector<CartPole> poles;
  for (const data::Row& row : data::read_csv(path)) {
    poles.push_back({row.number("x"), row.number("speed"), row.number("angle"), row.number("turn")});
    if (!poles.back().stands())
      throw std::runtime_error(data::to_string(row.source) + ": the pole leans by over 12°, or the cart is 2.4 m off.");
  }
  if (poles.empty()) throw std::runtime_error(fmt::format("there is no state in '{}'.", io::printable(path)));
  return poles;
}

double mean_length(const Policy& policy, const std::vector<CartPole>& poles) {
  std::vector<std::int64_t> lengths = act(policy, poles, false).lengths;
  return std::accumulate(lengths.begin(), lengths.end(), 0.) / static_cast<double>(lengths.size());
}

double median_of(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return (numbers[numbers.size() / 2] + numbers[(numbers.size() - 1) / 2]) / 2;
}

/// The angle of the pole and the place of the cart through an episode.
void draw(const std::vector<CartPole>& seen, const std::string& directory) {
  logging::LinePlot plot{.title = "An episode", .x_label = "seconds"};
  plot.curves = {{"pole, degrees", {}, {}}, {"cart, centimetres", {}, {}}};
  for (std::size_t t = 0; t < seen.size(); ++t) {
    for (logging::Curve& curve : plot.curves) curve.x.push_back(0.02 * static_cast<double>(t));
    plot.curves[0].y.push_back(seen[t].angle * 180 / M_PI);
    plot.curves[1].y.push_back(seen[t].x * 100);
  }
  logging::Writer(directory + "/episode").figure("episode", plot, 0);
  logging::plot(directory, directory + "/curves.html");
}

struct Options : samples::RunOptions {
  int seeds = 1;
  double discount = 0.99;
};

void run(Options options) {
  io::Contents file = samples::load(options, "reinforce");
  if (!options.load.empty()) options.seeds = std::stoi(file.metadata["seeds"]);
  auto test = options.test.empty() ? std::vector<CartPole>() : read_poles(options.test);
  nn::ModuleList<Policy> agents;  // each learns by itself, from a seed of its own
  for (int i = 0; i < options.seeds; ++i) {
    manual_seed(options.seed + static_cast<std::uint64_t>(i));
    agents.push_back(Policy());
  }
  if (!options.load.empty()) io::load_into(agents, file);
  Generator generator(options.seed);
  std::vector<CartPole> dev = draw_poles(100, generator), fresh = draw_poles(100, generator);

  optim::Adam adam(agents.parameters(), {.learning_rate = options.learning_rate});
  data::Loader loader(std::views::iota(0, 10), {.batch_size = 1, .seed = options.seed});
  auto step = [&](const auto&) {
    Tape tape;
    Tensor loss = zeros({});
    for (const Policy& policy : agents)
      loss = loss + loss_of(act(policy, draw_poles(options.batch, default_generator()), true), options.discount);
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss);
    optim::clip_grad_norm(adam.parameters(), 1);
    adam.step();
    adam.zero_grad();
    return value;
  };
  auto lengths_on = [&](const std::vector<CartPole>& poles) {
    std::vector<double> lengths;
    for (const Policy& policy : agents) lengths.push_back(mean_length(policy, poles));
    return lengths;
  };
  std::string opening = fmt::format("{} agents, {} parameters", options.seeds, agents.parameter_count());
  io::Metadata about{{"sample", "reinforce"}, {"seeds", std::to_string(options.seeds)}};
  samples::train({options, agents, adam, "steps", opening, about}, loader, step, [&] {
    std::vector<double> lengths = lengths_on(dev);
    double mean = std::accumulate(lengths.begin(), lengths.end(), 0.) / options.seeds;
    return samples::Reached{mean, fmt::format("{:.1f} steps, median {:.1f}", mean, median_of(lengths))};
  });
  std::vector<std::vector<std::string>> rows{{"seed", "steps of 500"}};
  for (double length : lengths_on(fresh))
    rows.push_back({std::to_string(options.seed + rows.size() - 1), fmt::format("{:.1f}", length)});
  if (!test.empty()) rows.push_back({"test, median", fmt::format("{:.1f}", median_of(lengths_on(test)))});
  rows.push_back({"median", fmt::format("{:.1f}", median_of(lengths_on(fresh)))});
  samples::print_results(rows);
  if (!options.log.empty()) draw(act(agents[0], fresh, false).seen, options.log);
}

int main(int argc, char** argv) {
  Options options;
  options.epochs = 10;
  options.batch = 16;
  options.learning_rate = 0.01;
  samples::CommandLine line("Learns to balance a pole on a cart by trial and error.", "reinforce");
  samples::add_common_options(line, options, "episodes",
                              "CSV file of states to start from, with columns x, speed, angle and turn");
  line.add_option("--seeds", options.seeds, "agents, from as many seeds on", samples::at_least(1));
  line.add_option("--discount", options.discount, "weight of each later step", samples::between(0.01, 0.9999));
  return line.run(argc, argv, [&] { run(options); });
}
