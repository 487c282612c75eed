#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <reel/data.h>
#include <reel/logging.h>
#include <reel/reel.h>
#include <reel/train.h>

#include "command_line.h"
#include "ranks/ranks.h"

namespace samples {

/// The options, given on the command line, of a training run of any model.
struct RunOptions {
  std::string train, dev, test, save, load, checkpoint, log, record;
  bool resume = false, serve = false;
  int epochs = 10;
  std::int64_t batch = 32;
  double learning_rate = 1e-3;
  std::uint64_t seed = 1;

  /// True if the run needs examples to learn from.
  bool trains() const { return epochs > 0 || load.empty(); }
};

/// Adds the options `--checkpoint`, `--resume`, `--log`, `--record` and `--serve`.
void add_run_options(CommandLine& line, RunOptions& options);
/// Adds the options that every sample has: `--test`, `--batch`, `--epochs`, `--learning-rate`, `--seed`, `--save`,
/// `--load`, and those of `add_run_options`. `items`: what examples are called, "trees"; `test`: the text of `--help` for
/// `--test`, which says what the file holds.
void add_common_options(CommandLine& line, RunOptions& options, const std::string& items, const std::string& test);
/// Adds all options of a training run on files of examples: `--train`, `--dev` and those of `add_common_options`.
/// `items`: what examples are called, "trees".
void add_training_options(CommandLine& line, RunOptions& options, const std::string& items);

/// Prints the results of a run, a row each, in columns that are as wide as their longest cell: the first row has the
/// headings, the first column is aligned to the left, the others to the right.
void print_results(const std::vector<std::vector<std::string>>& rows);

/// The options as they hold in this process: of several, only the first writes files and serves a page.
RunOptions of_this_rank(RunOptions options);

/// The number of an example's words, as which an item made of it takes time.
inline std::int64_t words_of(const reel::data::Sentence& sentence) { return sentence.size(); }
/// The number of a tree's words, as which an item made of it takes time.
inline std::int64_t words_of(const reel::data::LabelledTree& tree) { return std::ssize(tree.words); }

/// Options of a Loader of a run over items made of the examples: shuffled batches, of which each process has its part, with
/// about as many words as the others.
template <class Item, class Example>
reel::data::LoaderOptions<Item> training_batches(const RunOptions& options, const std::vector<Example>& examples) {
  reel::data::LoaderOptions<Item> batches{.batch_size = options.batch, .shuffle = true, .seed = options.seed};
  batches.shard = rank();
  batches.shards = ranks();
  batches.bucket_batches = 1;  // the batches stay what they are in one process
  if (ranks() > 1) {
    batches.lengths.emplace();
    for (const Example& example : examples) batches.lengths->push_back(words_of(example));
  }
  return batches;
}

/// The examples of a run.
template <class Item>
struct Sets {
  std::vector<Item> train, dev, test;
};

/// Reads the files that the options name: `read(path)`; without `--train` `make_up()` gives examples, and without
/// `--dev` the last tenth of them is held back. Throws: std::runtime_error for a file without examples.
template <class Item, class Read, class MakeUp>
Sets<Item> read_sets(const RunOptions& options, const std::string& item, Read read, MakeUp make_up) {
  auto read_some = [&](const std::string& path) {
    std::vector<Item> items = read(path);
    if (items.empty())
      throw std::runtime_error(fmt::format("there is no {} in '{}'.", item, reel::io::printable(path)));
    return items;
  };
  Sets<Item> sets;
  if (options.trains()) sets.train = options.train.empty() ? make_up() : read_some(options.train);
  if (!options.test.empty()) sets.test = read_some(options.test);
  if (!options.dev.empty()) {
    sets.dev = read_some(options.dev);
  } else if (options.trains()) {
    std::ptrdiff_t held_back = (std::ssize(sets.train) + 9) / 10;
    if (std::ssize(sets.train) == held_back)
      throw std::runtime_error(fmt::format("there are too few {}s to hold some back; name a --dev file.", item));
    sets.dev.assign(sets.train.end() - held_back, sets.train.end());
    sets.train.resize(sets.train.size() - static_cast<std::size_t>(held_back));
  }
  return sets;
}

/// How good a model is after an epoch.
struct Reached {
  double score;      ///< larger is better
  std::string text;  ///< such as "dev 83.10 %"
};

/// Logs, checkpoints, the recording and the debugger's page of a run, as its options ask for them.
class Records {
 public:
  /// `parts`: what a checkpoint saves. If there are several processes, the first one saves, and all resume.
  Records(const RunOptions& options, std::vector<reel::train::CheckpointPart> parts);

  /// True if the run goes on from a checkpoint.
  bool resumed() const { return resumed_; }
  /// To be called after each step: logs its loss, and saves a checkpoint every so often.
  /// Throws: train::Interrupted after a signal.
  void after_step(double loss);
  /// Saves a checkpoint of the complete training.
  void after_training();
  /// To be called after each epoch: logs what was reached, and saves a checkpoint.
  void after_epoch(int epoch, const Reached& reached, double seconds, double seconds_waited);

 private:
  std::unique_ptr<reel::train::Checkpoint> checkpoint_;
  bool saves_ = rank() == 0;
  std::unique_ptr<reel::logging::Writer> log_;
  std::unique_ptr<reel::debug::Recording> recording_;
  std::optional<reel::debug::Session> session_;
  bool resumed_ = false;
  std::int64_t steps_ = 0;
};

/// The model of a training run, and how it is trained.
struct Run {
  const RunOptions& options;
  reel::nn::Module& model;
  reel::optim::Optimiser& optimiser;
  std::string unit;          ///< what examples are called, "trees"
  std::string opening;       ///< the first line that is printed
  reel::io::Metadata about;  ///< metadata of the file of weights
  /// Further parts of a checkpoint beside model, optimiser, loader and best weights: a second optimiser, a carried state.
  std::vector<reel::train::CheckpointPart> also = {};
};

/// Trains a model for the epochs of the options: `step(batch)` makes a step and returns the loss, `evaluate()` returns a
/// Reached. `loader`: a data::Loader; of examples that are made up anew in each epoch, one of
/// `data::transformed(std::views::iota(0, count), make)`. Keeps the best weights, those of `--load` among them, and writes
/// them to `--save`, also if a signal or an error ends the run early.
template <class Loader, class Step, class Evaluate>
void train(const Run& run, Loader& loader, Step step, Evaluate evaluate) {
  RunOptions options = of_this_rank(run.options);
  reel::nn::Module& model = run.model;
  reel::train::BestWeights best(model);
  if (!options.save.empty()) reel::io::check_save(options.save, model, run.about);
  auto train_epochs = [&] {
    fmt::print("{}\n", run.opening);
    std::fflush(stdout);  // a failure is found when there are weights to save
    std::vector<reel::train::CheckpointPart> parts = run.also;
    parts.insert(parts.end(), {{"model", model}, {"optimiser", run.optimiser}, {"loader", loader}, {"best", best}});
    Records records(options, std::move(parts));
    auto offer = [&](const Reached& reached, const std::string& after) {
      best.offer(reached.score);
      fmt::print("{}  {}\n", after, reached.text);
      flush_output();
    };
    if (!options.load.empty() && options.epochs > 0 && !records.resumed()) offer(evaluate(), "loaded weights");
    while (loader.epoch() < options.epochs) {
      int epoch = static_cast<int>(loader.epoch()) + 1;
      std::int64_t left = loader.batches().value_or(0) - loader.position();
      reel::train::Progress progress(fmt::format("epoch {}/{}", epoch, options.epochs), left * options.batch / ranks(),
                                     run.unit);
      double waited = loader.seconds_waited();
      for (auto& batch : loader) {
        auto note = reel::debug::note("examples", loader.sources());
        double loss = step(batch);
        progress.advance(std::ssize(loader.indices()), loss);
        records.after_step(loss);
      }
      double seconds = progress.seconds();
      progress.clear();
      Reached reached = evaluate();
      offer(reached, fmt::format("epoch {:2}/{}  training loss {:.4f}  {:5.2f} s", epoch, options.epochs,
                                 progress.loss(), seconds));
      records.after_epoch(epoch, reached, seconds, loader.seconds_waited() - waited);
    }
  };
  train_and_save(best, options.save, train_epochs, [&] { reel::io::save(options.save, model, run.about); });
}

/// Loads the weights of `--load`, if it is given; `sample`: the program's name, which its files have in their metadata.
/// Throws: std::runtime_error for a file that the sample has not saved.
reel::io::Contents load(const RunOptions& options, const std::string& sample);

}  // namespace samples
