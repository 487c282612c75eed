// Finds a pendulum's length and friction from noisy films of its swings, by gradient through a simulator.
//
// The simulator is a loop of Runge-Kutta steps through θ'' = −(g/l) sin θ − c θ', one a frame, from the angle at which the
// pendulum is let go. With --model ode nothing is known of the law: a small network gives θ'', and the adjoint equation its
// gradient, so that the tape keeps no step. Films are learnt from their beginning on: a little more of them in each epoch.
//
// Paper: Chen et al., Neural ordinary differential equations (2018), for --model ode.
// Command: tools/run pendulum
// Command: tools/run pendulum --model ode --epochs 100
// Result: after 1 s the length and the friction are found to 0.23 % (seeds 2 and 3: 0.15, 0.05); with --model ode the angles of
//         held-back films are off by 0.006 radians after 12 s (0.004, 0.008; a constant guess: 0.77). One core with AVX-512.

#include <algorithm>
#include <cmath>
#include <ranges>

#include "training.h"

using namespace reel;

constexpr double longest_step = 0.051;  // seconds

/// The equation of motion of a pendulum: the state y (N, 2), angles in radians and their speeds, → dy/dt.
struct Law : nn::Module {
  Tensor operator()(const Tensor& y) const {
    Tensor angle = slice(y, 1, 0, 1), speed = slice(y, 1, 1, 2);
    return concat({speed, acceleration(angle, speed)}, 1);
  }
  virtual Tensor acceleration(const Tensor& angle, const Tensor& speed) const = 0;
};

struct Pendulum : Law {
  nn::Parameter log_length{*this, "log_length", {1}, nn::constant(0)};  // so that the length is positive
  nn::Parameter log_friction{*this, "log_friction", {1}, nn::constant(-1)};

  Tensor acceleration(const Tensor& angle, const Tensor& speed) const override {
    return -9.81 * exp(-log_length) * sin(angle) - exp(log_friction) * speed;
  }
};

struct Network : Law {
  nn::Linear hidden, output;

  explicit Network(std::int64_t size) : hidden(*this, "hidden", 2, size), output(*this, "output", size, 1) {}
  Tensor acceleration(const Tensor& angle, const Tensor& speed) const override {
    return output(tanh(hidden(concat({sin(angle), speed}, 1))));
  }
};

/// The angles (T, N) at the given times of pendulums that are let go at `start` (N).
Tensor swing(const Law& law, const Tensor& start, std::span<const double> times) {
  Tensor y = stack({start, zeros_like(start)}, 1);
  if (dynamic_cast<const Pendulum*>(&law)) {
    std::vector<Tensor> angles{start};
    for (std::size_t i = 1; i < times.size(); ++i) {
      double between = times[i] - times[i - 1], steps = std::ceil(between / longest_step);
      for (double k = 0; k < steps; ++k)
        y = rk4_step([&](double, const Tensor& y) { return law(y); }, times[i - 1], y, between / steps);
      angles.push_back(select(y, 1, 0));
    }
    return stack(angles);
  }
  std::vector<NamedTensor> weights = law.named_parameters();
  auto f = [&law, weights](double, const Tensor& y, std::span<const Tensor> w) mutable {
    for (std::size_t i = 0; i < w.size(); ++i) weights[i].tensor = w[i];
    return nn::functional_call(law, weights, y);
  };
  return select(odeint_adjoint(f, y, times, law.parameters(), {OdeMethod::runge_kutta4, longest_step}), 2, 0);
}

struct Options : samples::RunOptions {
  std::string model = "pendulum";
  double length = 0.8, friction = 0.2, seconds = 6;
  std::int64_t films = 32, size = 32, steps = 20;
};

/// Films of N swings.
struct Films {
  std::vector<double> times;
  Tensor start, angles;  // (N), and (T, N)
};

Films film(const Options& options, double noise, Generator& generator) {
  constexpr int finer = 10;
  std::vector<double> fine;
  for (int i = 0; i <= finer * static_cast<int>(20 * options.seconds); ++i) fine.push_back(i * 0.05 / finer);
  Pendulum truth;
  truth.log_length = full({1}, std::log(options.length));
  truth.log_friction = full({1}, std::log(options.friction));
  Tensor start = rand({options.films}, {.generator = &generator}) * 5 - 2.5;
  Tensor angles = slice(swing(truth, start, fine), 0, 0, std::ssize(fine), finer);
  Films films{{}, start, angles + noise * randn(angles.shape(), {.generator = &generator})};
  for (std::size_t i = 0; i < fine.size(); i += finer) films.times.push_back(fine[i]);
  return films;
}

Films read_film(const std::string& path) {
  Films film;
  std::vector<float> angles;
  for (const data::Row& row : data::read_csv(path))
    film.times.push_back(row.number("time")), angles.push_back(static_cast<float>(row.number("angle")));
  if (angles.size() < 2 || !std::ranges::is_sorted(film.times, std::less_equal<>()))
    throw std::runtime_error(fmt::format("'{}' has no frames whose times increase.", io::printable(path)));
  film.angles = reshape(tensor(angles), {-1, 1});
  film.start = film.angles(0);
  return film;
}

/// The root of the mean squared error of the angles, in radians.
double error_on(const Law& law, const Films& films) {
  return std::sqrt(mse_loss(swing(law, films.start, films.times), films.angles).item());
}

void print_table(const Law& law, const Films& dev, const std::optional<Films>& test, const Options& options) {
  std::vector<std::vector<std::string>> rows{{"", "truth", "found", "error"}};
  double largest = 0;
  auto add_row = [&](const char* name, double truth, const Tensor& found) {
    double error = 100 * std::abs(std::exp(found.item()) / truth - 1);
    largest = std::max(largest, error);
    rows.push_back({name, fmt::format("{:.4f}", truth), fmt::format("{:.4f}", std::exp(found.item())),
                    fmt::format("{:.2f} %", error)});
  };
  auto in_radians = [](double error) { return fmt::format("{:.4f}", error); };
  if (test) rows.push_back({"test, radians", "", "", in_radians(error_on(law, *test))});
  rows.push_back({"constant guess, radians", "", "", in_radians(std::sqrt(mean(square(dev.angles)).item()))});
  rows.push_back({"held-back films, radians", "", "", in_radians(error_on(law, dev))});
  if (const auto* pendulum = dynamic_cast<const Pendulum*>(&law)) {
    add_row("length, metres", options.length, pendulum->log_length);
    add_row("friction, 1/s", options.friction, pendulum->log_friction);
    rows.push_back({"largest", "", "", fmt::format("{:.2f} %", largest)});
  }
  samples::print_results(rows);
}

void draw(const Law& law, const Films& films, const std::string& directory) {
  auto numbers = [](const Tensor& angles) { return to(select(angles, 1, 0), f64).to_vector<double>(); };
  logging::LinePlot plot{.title = "A swing", .x_label = "seconds", .y_label = "radians"};
  plot.curves = {{"film", films.times, numbers(films.angles)},
                 {"simulator", films.times, numbers(swing(law, films.start, films.times))}};
  logging::Writer(directory + "/swing").figure("swing", plot, 0);
  logging::plot(directory, directory + "/curves.html");
}

void run(Options options) {
  manual_seed(options.seed);
  io::Contents file = samples::load(options, "pendulum");
  if (!options.load.empty()) options.model = file.metadata["model"], options.size = std::stoll(file.metadata["size"]);
  auto test = options.test.empty() ? std::nullopt : std::optional(read_film(options.test));
  std::unique_ptr<Law> made = std::make_unique<Pendulum>();
  if (options.model == "ode") made = std::make_unique<Network>(options.size);
  Law& law = *made;
  if (!options.load.empty()) io::load_into(law, file);
  Generator generator(options.seed);
  Films seen = film(options, 0.02, generator), dev = film(options, 0, generator);
  optim::Adam adam(law.parameters(), {.learning_rate = options.learning_rate});
  optim::Scheduler scheduler(adam, optim::cosine({.steps = std::max<std::int64_t>(options.epochs * options.steps, 1)}));
  data::Loader loader(std::views::iota(std::int64_t{0}, options.steps), {.batch_size = 1, .seed = options.seed});
  auto step = [&](const auto&) {
    double share = std::min(1.0, 1.5 * static_cast<double>(loader.epoch() + 1) / options.epochs);
    auto frames = std::max<std::int64_t>(2, std::llround(share * static_cast<double>(seen.times.size())));
    Tape tape;
    Tensor angles = swing(law, seen.start, std::span(seen.times).first(static_cast<std::size_t>(frames)));
    Tensor loss = mse_loss(angles, slice(seen.angles, 0, 0, frames));
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss);
    optim::clip_grad_norm(adam.parameters(), 1);
    adam.step();
    adam.zero_grad();
    scheduler.step();
    return value;
  };
  io::Metadata about{{"sample", "pendulum"}, {"model", options.model}, {"size", std::to_string(options.size)}};
  std::string opening =
      fmt::format("{} films of {} frames, {} parameters", options.films, seen.times.size(), law.parameter_count());
  samples::Run run{options, law, adam, "steps", opening, about, {{"scheduler", scheduler}}};
  samples::train(run, loader, step, [&] {
    double error = error_on(law, dev);
    return samples::Reached{-error, fmt::format("held-back films {:.4f} radians", error)};
  });
  print_table(law, dev, test, options);
  if (!options.log.empty()) draw(law, test ? *test : dev, options.log);
}

int main(int argc, char** argv) {
  Options options;
  options.epochs = 20;
  options.learning_rate = 0.02;
  samples::CommandLine line("Finds the length and the friction of a pendulum from films of its swings.", "pendulum");
  samples::add_common_options(line, options, "steps",
                              "CSV file of a film, with columns time (s) and angle (radians), from where it is let go");
  line.add_option("--model", options.model, "pendulum: its law, of which two numbers are unknown; ode: a network",
                  samples::one_of({"pendulum", "ode"}));
  line.add_option("--length", options.length, "metres of the pendulum that is filmed", samples::at_least(0.01));
  line.add_option("--friction", options.friction, "friction of the pendulum that is filmed, in 1/s",
                  samples::at_least(0.001));
  line.add_option("--films", options.films, "swings to learn from", samples::at_least(1));
  line.add_option("--seconds", options.seconds, "length of a film", samples::at_least(1));
  return line.run(argc, argv, [&] { run(options); });
}
