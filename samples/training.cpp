#include "training.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace samples {

namespace {

constexpr std::int64_t steps_between_checkpoints = 100;

// Counts the code points of a text in UTF-8.
std::size_t characters_in(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

}  // namespace

void add_run_options(CommandLine& line, RunOptions& options) {
  line.add_option(
      "--checkpoint", options.checkpoint,
      "folder for the state of the run, which is saved every 100 steps, after each epoch, and when SIGINT or "
      "SIGTERM ends it");
  line.add_flag("--resume", options.resume, "go on from the latest state in --checkpoint, if there is one");
  line.add_option("--log", options.log, "folder for TensorBoard's event files and a table of all losses");
  line.add_option("--record", options.record, "file for a recording of every op, for reel debug, diff and report");
  line.add_flag("--serve", options.serve, "stop before the first op, and serve a page from which the run is debugged");
}

void add_common_options(CommandLine& line, RunOptions& options, const std::string& items, const std::string& test) {
  auto add = [&](const char* name, auto& value, const std::string& help, const Accepted& accepted = {}) {
    line.add_option(name, value, help.c_str(), accepted);
  };
  add("--test", options.test, test);
  add("--batch", options.batch, items + " per step", at_least(1));
  add("--epochs", options.epochs, "passes over the " + items + "; 0 trains nothing", at_least(0));
  add("--learning-rate", options.learning_rate, "the optimiser's", at_least(0));
  add("--seed", options.seed, "of all random numbers", at_least(0));
  add("--save", options.save, save_help);
  add("--load", options.load, "file of weights to start with, which an epoch has to beat to be saved; its sizes hold");
  add_run_options(line, options);
}

void add_training_options(CommandLine& line, RunOptions& options, const std::string& items) {
  std::string train = items + " to learn from, plain or compressed with gzip; without it, made-up ones";
  std::string dev = items + " that choose the best epoch; without it, a tenth of those to learn from";
  line.add_option("--train", options.train, train.c_str());
  line.add_option("--dev", options.dev, dev.c_str());
  add_common_options(line, options, items, items + " to evaluate the result on");
}

void print_results(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], characters_in(row[i]));
  }
  fmt::print("\n");
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string padding(widths[i] - characters_in(row[i]), ' ');
      line += i == 0 ? row[i] + padding : "  " + padding + row[i];
    }
    fmt::print("{}\n", line);
  }
}

RunOptions of_this_rank(RunOptions options) {
  if (rank() > 0) {
    options.save.clear();
    options.log.clear();
    options.record.clear();
    options.serve = false;
  }
  return options;
}

Records::Records(const RunOptions& options, std::vector<reel::train::CheckpointPart> parts) {
  if (options.resume && options.checkpoint.empty())
    throw std::runtime_error("--resume needs the --checkpoint to go on from.");
  if (!options.checkpoint.empty()) {
    if (!saves_) wait_for_ranks();  // until the folder exists
    checkpoint_ = std::make_unique<reel::train::Checkpoint>(
        options.checkpoint, reel::train::CheckpointOptions{.every = steps_between_checkpoints, .read_only = !saves_});
    if (saves_) wait_for_ranks();
    for (reel::train::CheckpointPart& part : parts) checkpoint_->add(std::move(part));
    if (options.resume) resumed_ = static_cast<bool>(checkpoint_->resume());
    steps_ = checkpoint_->steps();
    wait_for_ranks();  // until all have read it
  }
  if (!options.record.empty()) recording_ = std::make_unique<reel::debug::Recording>(options.record);
  if (!options.log.empty()) {
    reel::logging::WriterOptions of_log{.csv = true};
    if (resumed_) of_log.purge_step = steps_ + 1;
    log_ = std::make_unique<reel::logging::Writer>(options.log, of_log);
  }
  if (options.serve)
    session_.emplace(reel::debug::SessionOptions{.stop_at_end = true, .serve = true, .logs = options.log},
                     reel::Location::here());
}

void Records::after_step(double loss) {
  ++steps_;
  if (log_) log_->scalar("training loss", loss, steps_);
  if (checkpoint_ && saves_)
    checkpoint_->after_step();
  else
    reel::train::check_interruption();
}

void Records::after_epoch(int epoch, const Reached& reached, double seconds, double seconds_waited) {
  if (log_) {
    log_->scalar("score", reached.score, steps_);
    log_->scalar("seconds an epoch", seconds, steps_);
    log_->scalar("share of waiting for batches", seconds > 0 ? seconds_waited / seconds : 0, steps_);
    log_->text("epoch", fmt::format("epoch {}: {}", epoch, reached.text), steps_);
  }
  if (checkpoint_ && saves_) checkpoint_->save({.score = reached.score});
}

void Records::after_training() {
  if (checkpoint_ && saves_) checkpoint_->save();
}

reel::io::Contents load(const RunOptions& options, const std::string& sample) {
  if (options.load.empty()) return {};
  reel::io::Contents file = reel::io::load(options.load);
  auto found = file.metadata.find("sample");
  if (found == file.metadata.end() || found->second != sample)
    throw std::runtime_error(fmt::format("'{}' was not saved by {}.", reel::io::printable(options.load), sample));
  return file;
}

}  // namespace samples
