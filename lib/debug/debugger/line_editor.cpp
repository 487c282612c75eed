#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <reel/debug/debugger.h>

namespace reel::debug {

namespace {

// libedit's functions with the interface of readline, loaded when a session on a terminal begins, so that neither the
// library nor the tool needs it.
class LineEditor {
 public:
  using Complete = char** (*)(const char* text, int start, int end);

  LineEditor() : library_(dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) return;
    find("readline", readline_);
    find("add_history", add_history_);
    find("rl_completion_matches", matches_);
    find("rl_attempted_completion_function", attempted_);
    find("rl_line_buffer", buffer_);
    find("rl_attempted_completion_over", over_);
  }
  bool works() const { return readline_ && add_history_; }

  /// Reads a line; false at the end of the input.
  bool read(const std::string& prompt, std::string& line) const {
    std::unique_ptr<char, decltype(&std::free)> text(readline_(prompt.c_str()), &std::free);
    if (!text) return false;
    line = text.get();
    if (!line.empty()) add_history_(line.c_str());
    return true;
  }
  void complete_with(Complete complete) const {
    if (attempted_ && matches_) *attempted_ = complete;
  }
  char** matches(const char* text, char* (*next)(const char* text, int state)) const {
    // Without it file names would be offered where nothing else fits.
    if (over_) *over_ = 1;
    return matches_(text, next);
  }
  std::string line_before(int end) const {
    return buffer_ && *buffer_ ? std::string(*buffer_, static_cast<std::size_t>(end)) : std::string();
  }

 private:
  template <class F>
  void find(const char* name, F& function) {
    void* found = dlsym(library_, name);
    static_assert(sizeof found == sizeof function);
    std::memcpy(static_cast<void*>(&function), static_cast<const void*>(&found), sizeof found);
  }

  void* library_;  // never closed: the terminal stays as it has set it
  char* (*readline_)(const char*) = nullptr;
  int (*add_history_)(const char*) = nullptr;
  char** (*matches_)(const char*, char* (*)(const char*, int)) = nullptr;
  Complete* attempted_ = nullptr;
  char** buffer_ = nullptr;
  int* over_ = nullptr;
};

// The callbacks of libedit have no argument of ours, so what they need is known here while lines are read.
struct Completing {
  const Debugger* debugger = nullptr;
  const LineEditor* editor = nullptr;
  std::vector<std::string> found;
  std::size_t given = 0;
};
thread_local constinit Completing* completing = nullptr;

char* next_completion(const char*, int state) {
  if (state == 0) completing->given = 0;
  if (completing->given == completing->found.size()) return nullptr;
  return strdup(completing->found[completing->given++].c_str());
}

char** complete(const char* text, int, int end) {
  if (!completing) return nullptr;
  completing->found = completing->debugger->completions(completing->editor->line_before(end));
  return completing->editor->matches(text, next_completion);
}

Debugger::Next run_on_terminal(Debugger& debugger, const LineEditor& editor, const std::string& prompt) {
  Completing here{&debugger, &editor, {}, 0};
  completing = &here;
  editor.complete_with(complete);
  auto next = Debugger::Next::command;
  std::string line;
  while (next == Debugger::Next::command && editor.read(prompt, line)) next = debugger.execute(line);
  completing = nullptr;
  return next;
}

}  // namespace

Debugger::Next run_commands(Debugger& debugger, std::string_view prompt) {
  bool on_terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  const std::string shown_prompt(prompt);
  std::string line;
  auto next = Debugger::Next::command;
  if (on_terminal) {
    static const LineEditor editor;
    if (editor.works()) return run_on_terminal(debugger, editor, shown_prompt);
  }
  while (next == Debugger::Next::command) {
    if (on_terminal) {
      std::cout << shown_prompt;
      std::cout.flush();
    }
    if (!std::getline(std::cin, line)) break;
    next = debugger.execute(line);
  }
  return next;
}

}  // namespace reel::debug
