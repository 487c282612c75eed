// Learns to classify with a mixture of experts, of which a gate chooses two for each example.
//
// The examples form clusters, each of which has classes of its own: an expert can learn the boundaries of a few
// clusters, where one dense network of equal cost has to learn those of all. The gate adds noise while it learns, so that
// other experts are tried, and a loss that balances them. Both are trained on the same batches, once for each seed.
//
// Paper: Shazeer et al., Outrageously large neural networks: the sparsely-gated mixture-of-experts layer (ICLR 2017).
// Data: generated, or --train: a CSV file with a header, a row an example: its features, and last its class, from 0.
// Command: tools/run moe --seeds 5
// Result: 88.4 % of the held-back examples, dense 66.0 %: 72 standard errors (seeds 1 to 5; 5 s, AVX-512); a guess 25 %.

#include "made_up.h"
#include "training.h"

using namespace reel;

struct Sizes {
  std::int64_t features = 16, classes = 4, experts = 16, hidden = 16, k = 2;

  /// The hidden units of a dense network with the multiplications of k experts and of the gate with its noise.
  std::int64_t dense_hidden() const { return k * hidden + 2 * features * experts / (features + classes); }
};

struct Expert : nn::Module {
  nn::Linear hidden, output;

  Expert(std::int64_t features, std::int64_t size, std::int64_t classes)
      : hidden(*this, "hidden", features, size), output(*this, "output", size, classes) {}
  Expert(nn::Module& parent, std::string_view name, std::int64_t features, std::int64_t size, std::int64_t classes)
      : Expert(features, size, classes) {
    join(parent, name);
  }
  Tensor operator()(const Tensor& x) const { return output(relu(hidden(x))); }
};

/// A mixture, and one dense network of as many multiplications for an example.
struct Rivals : nn::Module {
  nn::MixtureOfExperts<Expert> mixture;
  Expert dense;

  explicit Rivals(const Sizes& s)
      : mixture(*this, "mixture", s.features, s.experts, {.k = s.k}, s.features, s.hidden, s.classes),
        dense(*this, "dense", s.features, s.dense_hidden(), s.classes) {}

  /// The loss of both, whose gradients do not meet.
  Tensor loss(const Tensor& x, const Tensor& y) const {
    auto [logits, balance] = mixture(x);
    return cross_entropy(logits, y) + balance + cross_entropy(dense(x), y);
  }
};

struct Model : nn::Module {
  nn::ModuleList<Rivals> seeds{*this, "seeds"};

  Model(const Sizes& sizes, std::uint64_t seed, int count) {
    for (int i = 0; i < count; ++i) {
      manual_seed(seed + static_cast<std::uint64_t>(i));
      seeds.push_back(Rivals(sizes));
    }
  }
};

using Example = samples::Point;

struct Batch {
  Tensor x, y;  // (N, features), (N)

  explicit Batch(const std::vector<Example>& examples) {
    std::vector<float> all;
    std::vector<std::int64_t> classes;
    for (const Example& example : examples) {
      all.insert(all.end(), example.x.begin(), example.x.end());
      classes.push_back(example.y);
    }
    x = tensor(all, {std::ssize(examples), std::ssize(examples[0].x)});
    y = tensor(classes);
  }
};

std::vector<Example> read_examples(const std::string& path) {
  std::vector<Example> examples;
  for (const data::Row& row : data::read_csv(path)) {
    Example example{{}, row.integer(row.size() - 1)};
    for (std::int64_t i = 0; i + 1 < row.size(); ++i) example.x.push_back(static_cast<float>(row.number(i)));
    if (example.x.empty() || example.y < 0)
      throw std::runtime_error(
          fmt::format("{}: a row has features and then a class from 0.", data::to_string(row.source)));
    examples.push_back(std::move(example));
  }
  return examples;
}

/// The shares of examples that each network classifies correctly, in per cent: (mixture, dense) for each seed.
std::vector<std::pair<double, double>> evaluate(Model& model, const std::vector<Example>& examples) {
  model.eval();
  Batch all(examples);
  std::vector<std::pair<double, double>> right;
  for (const Rivals& rivals : model.seeds)
    right.emplace_back(100 * train::accuracy(rivals.mixture(all.x).output, all.y),
                       100 * train::accuracy(rivals.dense(all.x), all.y));
  model.train();
  return right;
}

void print_table(const std::string& set, const std::vector<std::pair<double, double>>& right, std::uint64_t seed) {
  auto count = static_cast<double>(right.size());
  double mixture = 0, dense = 0, squares = 0;
  std::vector<std::vector<std::string>> rows = {{set, "mixture", "dense", "difference", "standard errors"}};
  auto row = [&](const std::string& name, double a, double b, const std::string& errors) {
    rows.push_back(
        {name, fmt::format("{:.2f} %", a), fmt::format("{:.2f} %", b), fmt::format("{:.2f} %", a - b), errors});
  };
  for (const auto& [a, b] : right) {
    row(fmt::format("seed {}", seed++), a, b, "");
    mixture += a / count;
    dense += b / count;
  }
  for (const auto& [a, b] : right) squares += std::pow(a - b - (mixture - dense), 2);
  double error = std::sqrt(squares / (count - 1) / count);
  row("mean", mixture, dense, count > 1 ? fmt::format("{:.1f}", (mixture - dense) / error) : "-");
  samples::print_results(rows);
}

struct Options : samples::RunOptions, Sizes {
  int seeds = 1;
  std::int64_t examples = 20'000;
};

void run(Options options) {
  auto make = [&] {
    return samples::made_up_clusters(options.seed, options.examples, options.features, options.classes);
  };
  auto sets = samples::read_sets<Example>(options, "example", read_examples, make);
  io::Contents file = samples::load(options, "moe");
  std::map<std::string, std::int64_t*> sizes = {{"features", &options.features},
                                                {"classes", &options.classes},
                                                {"experts", &options.experts},
                                                {"hidden", &options.hidden},
                                                {"k", &options.k}};
  if (!options.train.empty()) {
    options.features = std::ssize(sets.train[0].x);
    for (const Example& example : sets.train) options.classes = std::max(options.classes, example.y + 1);
  }
  if (!options.load.empty()) {
    for (const auto& [name, size] : sizes) *size = std::stoll(file.metadata[name]);
    options.seeds = std::stoi(file.metadata["seeds"]);
  }
  for (const auto* set : {&sets.train, &sets.dev, &sets.test})
    for (const Example& example : *set)
      if (std::ssize(example.x) != options.features || example.y >= options.classes)
        throw std::runtime_error(
            fmt::format("an example has {} features and class {}, but the networks take {} and {} classes.",
                        example.x.size(), example.y, options.features, options.classes));
  Model model(options, options.seed, options.seeds);
  if (!options.load.empty()) io::load_into(model, file);
  manual_seed(options.seed);

  optim::Adam adam(model.parameters(), {.learning_rate = options.learning_rate});
  auto to_batch = [](const std::vector<Example>& examples) { return Batch(examples); };
  data::Loader loader(sets.train, to_batch, {.batch_size = options.batch, .shuffle = true, .seed = options.seed});
  auto step = [&](const Batch& batch) {
    Tape tape;
    Tensor loss = 0 * sum(batch.x);
    for (const Rivals& rivals : model.seeds) loss = loss + rivals.loss(batch.x, batch.y);
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss);
    adam.step();
    adam.zero_grad();
    return value / options.seeds;
  };
  io::Metadata about = {{"sample", "moe"}, {"seeds", std::to_string(options.seeds)}};
  for (const auto& [name, size] : sizes) about[name] = std::to_string(*size);
  std::string opening =
      fmt::format("{} training examples, {} of {} experts of {} hidden units, a dense network of {}", sets.train.size(),
                  options.k, options.experts, options.hidden, options.dense_hidden());
  samples::train({options, model, adam, "examples", opening, about}, loader, step, [&] {
    double mixture = 0, dense = 0;
    for (const auto& [a, b] : evaluate(model, sets.dev)) mixture += a / options.seeds, dense += b / options.seeds;
    return samples::Reached{mixture + dense, fmt::format("mixture {:.2f} %, dense {:.2f} %", mixture, dense)};
  });
  if (!sets.test.empty()) print_table("test", evaluate(model, sets.test), options.seed);
  if (!sets.dev.empty()) print_table("dev", evaluate(model, sets.dev), options.seed);
}

int main(int argc, char** argv) {
  Options options;
  options.epochs = 15;
  options.learning_rate = 3e-3;
  options.batch = 100;
  samples::CommandLine line("Learns to classify with a mixture of experts, beside one dense network of equal cost.",
                            "moe");
  samples::add_training_options(line, options, "examples");
  line.add_option("--seeds", options.seeds, "networks of each kind, from as many seeds on", samples::at_least(1));
  line.add_option("--examples", options.examples, "examples that are generated", samples::at_least(20));
  line.add_option("--experts", options.experts, "experts of the mixture", samples::at_least(2));
  line.add_option("--hidden", options.hidden, "hidden units of an expert", samples::at_least(1));
  line.add_option("--k", options.k, "experts of each example", samples::at_least(1));
  return line.run(argc, argv, [&] { run(options); });
}
