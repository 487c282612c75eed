#include "processes.h"

#include <fmt/format.h>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>

extern char** environ;

namespace reel_bench {

namespace {

using Clock = std::chrono::steady_clock;

// Goals: the right-hand column over libtorch's, and over DyNet's.
struct ProcessCase {
  std::string name, task;
  double time_goal, memory_goal, time_dynet, memory_dynet;
  int rounds;
  std::string before;  // a task that writes its input file
};

const std::vector<ProcessCase>& cases() {
  static const std::vector<ProcessCase> all{
      {"startup, one tensor", "one_tensor", 0, 0, 0, 0, 15, ""},
      {"startup, matmul, tanh, backward", "first_step", 12.0 / 558, 30.0 / 158, 14.5 / 558, 21.0 / 158, 15, ""},
      {"startup, load an LSTM of 128 to 256, 50 steps", "predict", 0, 0, 0, 0, 15, "save_classifier"},
      {"lstm_memory T=200 B=32 H=512, by hand", "lstm_step", 0, 330.0 / 382, 0, 633.0 / 382, 11, ""},
      {"lstm_memory T=200 B=32 H=512, layer", "lstm_layer_step", 0, 330.0 / 382, 0, 0, 11, ""},
  };
  return all;
}

struct Outcome {
  double milliseconds, megabytes;
};

Outcome run(const std::string& program, const std::string& task) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::string name = program, argument = task;
  char* arguments[] = {name.data(), argument.data(), nullptr};
  pid_t child = 0;
  Clock::time_point start = Clock::now();
  int failure = posix_spawn(&child, name.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failure != 0) {
    close(ends[0]);
    throw std::runtime_error("cannot start " + program);
  }
  std::string answer;
  char letters[64];
  for (ssize_t count; (count = read(ends[0], letters, sizeof letters)) > 0;)
    answer.append(letters, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  double took = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (status != 0 || answer.empty()) throw std::runtime_error(program + " " + task + " failed");
  return {took, std::stod(answer)};
}

}  // namespace

std::vector<std::string> process_cases() {
  std::vector<std::string> names;
  for (const ProcessCase& one : cases()) names.push_back(one.name);
  return names;
}

std::vector<Finding> compare_processes(std::string_view name) {
  std::string folder = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  std::vector<Finding> findings;
  for (const ProcessCase& one : cases()) {
    if (one.name != name) continue;
    use_threads(1);  // child processes inherit the processor
    Finding time{"models", one.name + ", time", 0, "ms", {}, {}, {}, one.time_goal},
        memory{"models", one.name + ", peak memory", 0, "MB", {}, {}, {}, one.memory_goal};
    time.elsewhere = one.time_dynet;
    memory.elsewhere = one.memory_dynet;
    if (!one.before.empty())
      for (const char* program : {"/reel_process", "/torch_process"}) run(folder + program, one.before);
    for (int round = -1; round < one.rounds; ++round) {
      Outcome ours = run(folder + "/reel_process", one.task), theirs = run(folder + "/torch_process", one.task);
      if (round < 0) continue;  // reads the programs from the disk
      time.ours.push_back(ours.milliseconds);
      time.theirs.push_back(theirs.milliseconds);
      memory.ours.push_back(ours.megabytes);
      memory.theirs.push_back(theirs.megabytes);
    }
    time.ratios = divided(time.ours, time.theirs);
    memory.ratios = divided(memory.ours, memory.theirs);
    if (one.task.starts_with("lstm")) {
      findings.push_back(std::move(memory));
    } else {
      findings.push_back(std::move(time));
      findings.push_back(std::move(memory));
    }
  }
  return findings;
}

}  // namespace reel_bench
