#include <reel/train/checkpoint.h>

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include <reel/ops/create.h>
#include <reel/train/interruption.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/warning.h"
#include "../dispatch/listener_scope.h"
#include "../optim/state_reader.h"
#include "checkpoint_state.h"

namespace reel::train {

using namespace detail;

namespace {

constexpr const char* checkpoint_name = "train::Checkpoint";
// Names of what is saved beside the parts.
constexpr const char *generator_part = "default_generator", *counts_part = "checkpoint", *fit_part = "fit";

void check_part_name(const std::string& name, Location where) {
  auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-';
  };
  if (name.empty() || !std::ranges::all_of(name, fits))
    fail<Error>(checkpoint_name, where, "the name {} of a part is not one of letters, digits, '_' and '-'",
                shown(name));
  for (const char* reserved : {generator_part, counts_part, fit_part})
    if (name == reserved) fail<Error>(checkpoint_name, where, "the name '{}' is reserved; choose another one", name);
}

// The number of steps, whether they are counted, and the best score.
class SavedCounts : public CheckpointObject {
 public:
  SavedCounts(std::int64_t& steps, bool& counts_steps, std::vector<double>& best_score)
      : steps_(steps), counts_steps_(counts_steps), best_score_(best_score) {}
  const void* address() const override { return &steps_; }
  std::vector<NamedTensor> state(Location) const override {
    return {{"steps", tensor({steps_})},
            {"counts_steps", tensor({static_cast<std::int64_t>(counts_steps_)})},
            {"best_score", tensor(best_score_)}};
  }
  void load(std::span<const NamedTensor> state, Location where) override {
    StateReader reader(checkpoint_name, state, where);
    auto steps = reader.number<std::int64_t>("steps"), counts = reader.number<std::int64_t>("counts_steps");
    auto score = reader.list<double>("best_score", reader.rows("best_score") == 0 ? 0 : 1);
    reader.finish();
    if (steps < 0) fail<Error>(checkpoint_name, where, "the snapshot's 'steps' is {}", steps);
    steps_ = steps;
    counts_steps_ = counts != 0;
    best_score_ = std::move(score);
  }

 private:
  std::int64_t& steps_;
  bool& counts_steps_;
  std::vector<double>& best_score_;
};

// The progress of a fit that has not begun yet in this process, or has ended.
class KeptFit : public CheckpointObject {
 public:
  explicit KeptFit(std::vector<NamedTensor>& kept) : kept_(kept) {}
  const void* address() const override { return &kept_; }
  std::vector<NamedTensor> state(Location) const override { return kept_; }
  void load(std::span<const NamedTensor> state, Location) override { kept_.assign(state.begin(), state.end()); }

 private:
  std::vector<NamedTensor>& kept_;
};

// The snapshot that is to be restored: the wanted one, or else the newest that is whole.
std::optional<Snapshot> newest_whole(const SnapshotFolder& folder, bool best, Location where) {
  std::vector<std::int64_t> steps = folder.steps();
  std::optional<std::int64_t> first = best ? folder.best() : folder.latest();
  struct stat found;
  if (best && !first && lstat((folder.path() + "/best").c_str(), &found) == 0)
    fail<io::FileError>(checkpoint_name, where, "'{}/best' names no snapshot; resume() restores the latest one",
                        printable(folder.path()));
  if (steps.empty() || (best && !first)) return {};
  std::ranges::reverse(steps);
  if (first) {
    std::erase(steps, *first);
    steps.insert(steps.begin(), *first);
  }
  std::string why = first ? "" : fmt::format("'{}/latest' names no snapshot", printable(folder.path()));
  for (std::int64_t step : steps) {
    try {
      std::optional<Unobserved> trying;  // another one may be whole
      if (!best) trying.emplace(context());
      Snapshot snapshot = folder.read(step, where);
      trying.reset();
      if (!why.empty())
        warn([&] { return fmt::format("{}; '{}' is restored instead", why, printable(folder.path_of(step))); });
      return snapshot;
    } catch (const io::FileError& error) {
      // The next save would remove what a newer version has saved.
      if (best || dynamic_cast<const SnapshotVersionError*>(&error)) throw;
      if (step == first || why.empty()) why = error.what();
    }
  }
  fail<io::FileError>(checkpoint_name, where, "none of the snapshots in '{}' can be restored; the latest: {}",
                      printable(folder.path()), why);
}

}  // namespace

Checkpoint::State::State(std::string directory, const CheckpointOptions& given, Location where)
    : options(given), folder(std::move(directory), given.keep_last, given.read_only, where) {
  has_others_runs = !folder.steps().empty();
}

Checkpoint::State::~State() {
  task.wait();
  if (std::exception_ptr error = task.take_error()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& failure) {
      std::fputs("reel: error: ", stderr);
      std::fputs(failure.what(), stderr);
      std::fputs("\n", stderr);
    }
  }
}

std::vector<CheckpointEntry> Checkpoint::State::entries() {
  // Each thread has a generator of its own.
  if (!generator || generator->address() != &default_generator())
    generator = CheckpointPart(generator_part, default_generator()).object();
  if (!counts) counts = std::make_shared<SavedCounts>(steps, counts_steps, best_score);
  std::vector<CheckpointEntry> entries;
  entries.reserve(parts.size() + 3);
  for (const CheckpointPart& part : parts) entries.push_back({part.name(), part.object()});
  entries.push_back({generator_part, generator});
  entries.push_back({counts_part, counts});
  entries.push_back({fit_part, fit ? fit : std::make_shared<KeptFit>(fit_state)});
  return entries;
}

void Checkpoint::State::check_may_save(Location where) const {
  if (options.read_only)
    fail<Error>(checkpoint_name, where, "'{}' was opened with .read_only = true", printable(folder.path()));
  if (has_others_runs)
    fail<Error>(checkpoint_name, where,
                "'{}' has the snapshots of another run; resume() from them, or choose another directory",
                printable(folder.path()));
}

void Checkpoint::State::finish_save() {
  std::optional<Snapshot> ended = std::exchange(in_flight, {});
  if (std::exception_ptr error = task.take_error()) std::rethrow_exception(error);
  if (!ended) return;
  latest = ended->step;
  if (ended->is_best) best_score = {*ended->score};
}

void Checkpoint::State::wait() {
  task.wait();
  finish_save();
}

Checkpoint::Checkpoint(std::string directory, std::initializer_list<CheckpointPart> parts,
                       const CheckpointOptions& options, Location where)
    : Checkpoint(std::move(directory), options, where) {
  for (const CheckpointPart& part : parts) add(part, where);
}

Checkpoint::Checkpoint(std::string directory, const CheckpointOptions& options, Location where) {
  if (options.keep_last < 0 || options.every < 0)
    fail<Error>(checkpoint_name, where, "keep_last {} and every {} are not both 0 or more", options.keep_last,
                options.every);
  if (directory.empty()) fail<Error>(checkpoint_name, where, "the path of the directory is empty");
  state_ = std::make_unique<State>(std::move(directory), options, where);
}

Checkpoint::~Checkpoint() = default;

void Checkpoint::add(CheckpointPart part, Location where) {
  check_part_name(part.name(), where);
  if (state_->was_used)
    fail<Error>(checkpoint_name, where, "'{}' has to be added before the first resume() or save()", part.name());
  for (const CheckpointPart& other : state_->parts)
    if (other.name() == part.name()) fail<Error>(checkpoint_name, where, "there are two parts named '{}'", part.name());
  state_->parts.push_back(std::move(part));
}

Resumed Checkpoint::resume(const ResumeOptions& options, Location where) {
  return with_memory_error(checkpoint_name, where, [&] {
    state_->wait();
    std::optional<Snapshot> snapshot = newest_whole(state_->folder, options.best, where);
    Resumed result;
    if (snapshot) {
      restore(state_->entries(), divided_by_part(std::move(snapshot->tensors)), fit_part, options.partial, result,
              where);
      result.file = state_->folder.path_of(snapshot->step);
      result.step = snapshot->step;
      result.score = snapshot->score;
      state_->latest = snapshot->step;
    }
    state_->was_used = true;
    state_->has_others_runs = false;
    return result;
  });
}

std::string Checkpoint::save(const SaveOptions& options, Location where) {
  return with_memory_error(checkpoint_name, where, [&] {
    State& state = *state_;
    if (options.score && std::isnan(*options.score)) fail<Error>(checkpoint_name, where, "the score is NaN");
    if (options.step && *options.step < 0) fail<Error>(checkpoint_name, where, "the step {} is below 0", *options.step);
    state.check_may_save(where);
    state.wait();
    state.was_used = true;
    state.is_due = false;
    Snapshot snapshot{.score = options.score};
    std::int64_t steps_before = state.steps;
    std::vector<double> best_before = state.best_score;
    if (snapshot.score) {
      double sign = state.options.larger_is_better ? 1 : -1;
      snapshot.is_best = best_before.empty() || sign * *snapshot.score > sign * best_before[0];
    }
    // The snapshot's own counts are those after it; a save that fails does not count.
    if (!state.counts_steps) ++state.steps;
    if (snapshot.is_best) state.best_score = {*snapshot.score};
    try {
      snapshot.step = options.step.value_or(state.steps);
      snapshot.tensors = collected(state.entries(), where);
      state.best_score = best_before;
      std::string path = state.folder.path_of(snapshot.step);
      if (state.options.asynchronous) {
        make_own(snapshot.tensors, state.buffers, where);
        state.in_flight = std::move(snapshot);
        state.task.start([&state, where] { state.folder.write(*state.in_flight, where); });
      } else {
        state.folder.write(snapshot, where);
        state.in_flight = std::move(snapshot);
        state.finish_save();
      }
      return path;
    } catch (...) {
      state.in_flight.reset();
      state.best_score = std::move(best_before);
      state.steps = steps_before;
      throw;
    }
  });
}

void Checkpoint::after_step(Location where) {
  state_->check_may_save(where);
  state_->counts_steps = true;
  ++state_->steps;
  if (state_->options.every > 0 && state_->steps % state_->options.every == 0) state_->is_due = true;
  check(where);  // after the step is counted: it was made, whatever became of an earlier save
  bool saves = state_->is_due && !state_->task.is_running();
  if (saves) save({}, where);
  CheckpointForFit::end_if_interrupted(*this, saves, where);
}

std::int64_t Checkpoint::steps() const { return state_->steps; }

void Checkpoint::check(Location) {
  if (!state_->task.is_running()) state_->finish_save();
}

void Checkpoint::wait(Location) { state_->wait(); }

const std::string& Checkpoint::directory() const { return state_->folder.path(); }

std::string Checkpoint::latest() const {
  return state_->latest ? state_->folder.path_of(*state_->latest) : std::string();
}

std::optional<double> Checkpoint::best_score() const {
  if (state_->best_score.empty()) return {};
  return state_->best_score[0];
}

}  // namespace reel::train

namespace reel::detail {

void CheckpointForFit::begin(train::Checkpoint& checkpoint, std::shared_ptr<CheckpointObject> fit, Location where) {
  train::Checkpoint::State& state = *checkpoint.state_;
  if (!state.fit_state.empty()) fit->load(state.fit_state, where);
  state.fit = std::move(fit);
  if (state.was_used) return;
  try {
    checkpoint.resume({}, where);
  } catch (...) {
    state.fit.reset();
    throw;
  }
}

void CheckpointForFit::end(train::Checkpoint& checkpoint, Location where) noexcept {
  train::Checkpoint::State& state = *checkpoint.state_;
  try {
    state.fit_state = state.fit->state(where);
    std::vector<Tensor> no_buffers;
    make_own(state.fit_state, no_buffers, where);
  } catch (...) {
    // Without memory a later fit begins anew.
    state.fit_state.clear();
  }
  state.fit.reset();
}

void CheckpointForFit::end_if_interrupted(train::Checkpoint& checkpoint, bool is_saved, Location where) {
  try {
    train::check_interruption();
  } catch (const train::Interrupted& interrupted) {
    if (!is_saved) checkpoint.save({}, where);
    checkpoint.wait(where);
    fmt::print(stderr, "reel: {}; the run is saved in '{}'\n", interrupted.what(), printable(checkpoint.latest()));
    throw;
  }
}

}  // namespace reel::detail
