#include "training.h"

#include <stdexcept>

namespace samples {

namespace {

constexpr std::int64_t steps_between_checkpoints = 100;

}  // namespace

void add_run_options(CommandLine& line, RunOptions& options) {
  line.add_option(
      "--checkpoint", options.checkpoint,
      "folder for the state of the run, which is saved every 100 steps, after each epoch, and when SIGINT or "
      "SIGTERM ends it");
  line.add_flag("--resume", options.resume, "go on from the latest state in --checkpoint, if there is one");
  line.add_option("--log", options.log, "folder for TensorBoard's event files and a table of all losses");
}

void add_training_options(CommandLine& line, RunOptions& options, const std::string& items) {
  auto add = [&](const char* name, auto& value, const std::string& help, const Accepted& accepted = {}) {
    line.add_option(name, value, help.c_str(), accepted);
  };
  add("--train", options.train, items + " to learn from, plain or compressed with gzip; without it, made-up ones");
  add("--dev", options.dev, items + " that choose the best epoch; without it, a tenth of those to learn from");
  add("--test", options.test, items + " to evaluate the result on");
  add("--batch", options.batch, items + " per step", at_least(1));
  add("--epochs", options.epochs, "passes over the " + items + "; 0 trains nothing", at_least(0));
  add("--learning-rate", options.learning_rate, "the optimiser's", at_least(0));
  add("--seed", options.seed, "of all random numbers", at_least(0));
  add("--save", options.save, save_help);
  add("--load", options.load, "file of weights to start with, which an epoch has to beat to be saved; its sizes hold");
  add_run_options(line, options);
}

Records::Records(const RunOptions& options, std::initializer_list<reel::train::CheckpointPart> parts) {
  if (options.resume && options.checkpoint.empty())
    throw std::runtime_error("--resume needs the --checkpoint to go on from.");
  if (!options.checkpoint.empty()) {
    checkpoint_ = std::make_unique<reel::train::Checkpoint>(
        options.checkpoint, parts, reel::train::CheckpointOptions{.every = steps_between_checkpoints});
    if (options.resume) resumed_ = static_cast<bool>(checkpoint_->resume());
    steps_ = checkpoint_->steps();
  }
  if (options.log.empty()) return;
  reel::logging::WriterOptions of_log{.csv = true};
  if (resumed_) of_log.purge_step = steps_ + 1;
  log_ = std::make_unique<reel::logging::Writer>(options.log, of_log);
}

void Records::after_step(double loss) {
  ++steps_;
  if (log_) log_->scalar("training loss", loss, steps_);
  if (checkpoint_)
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
  if (checkpoint_) checkpoint_->save({.score = reached.score});
}

void Records::after_training() {
  if (checkpoint_) checkpoint_->save();
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
