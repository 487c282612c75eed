#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <thread>

#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/train.h>

#include "catch.h"
#include "train/progress_line.h"

using namespace reel;
using reel_test::contains;
using train::ProgressState;

namespace {

// The text that a child writes, whose standard output is a terminal of the given kind and size, or a pipe (columns 0).
std::string output_of(const char* terminal, unsigned short columns, const std::function<void()>& run) {
  int ends[2] = {-1, -1}, side = -1;
  winsize size{24, columns, 0, 0};
  if (columns == 0) REQUIRE(pipe(ends) == 0);
  // The child would write what waits in this process.
  std::cout.flush();
  std::fflush(stdout);
  pid_t child = columns == 0 ? fork() : forkpty(&side, nullptr, nullptr, &size);
  if (child == 0) {
    if (columns == 0) dup2(ends[1], STDOUT_FILENO);
    terminal ? setenv("TERM", terminal, 1) : unsetenv("TERM");
    run();
    std::fflush(stdout);
    _exit(0);
  }
  if (columns == 0) {
    close(ends[1]);
    side = ends[0];
  }
  std::string text;
  char bytes[512];
  for (ssize_t count; (count = read(side, bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(count));
  waitpid(child, nullptr, 0);
  close(side);
  return text;
}

// Two steps, after the first of which the terminal becomes `columns` wide.
void advance_twice(train::Progress& progress, unsigned short columns) {
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(105));
    progress.advance(100, 0.5);
    winsize later{24, columns, 0, 0};
    if (columns > 0) ioctl(STDOUT_FILENO, TIOCSWINSZ, &later);
  }
}

// Shows two steps, and ends.
std::function<void()> two_steps(unsigned short columns_later) {
  return [columns_later] {
    train::Progress progress("epoch 1/2", 1000, "steps");
    advance_twice(progress, columns_later);
  };
}

ProgressState state(std::int64_t total, std::int64_t done, double seconds) {
  return {"epoch 1/2", "trees", total, done, 0.25, seconds};
}

}  // namespace

TEST_CASE("a line of progress says how much is done, how fast, and how long it will take") {
  CHECK(progress_line(state(1000, 250, 10)) == "epoch 1/2  25%  loss 0.2500  25 trees/s  0:30 left");
  CHECK(progress_line(state(1000, 100, 1000)) == "epoch 1/2  10%  loss 0.2500  6.0 trees/min  2:30:00 left");
  CHECK(progress_line(state(-1, 3, 7200)) == "epoch 1/2 3 trees  loss 0.2500  1.5 trees/h  2:00:00");
  CHECK_THAT(progress_line(state(0, 0, 0)), contains("100%"));
  CHECK_THAT(progress_line(state(10, 20, 1)), contains("100%") && contains("0:00 left"));
  CHECK_THAT(progress_line(state(1000, 0, 1e9)), contains(" left"));
}

TEST_CASE("durations have hours where there are any") {
  CHECK(nn::duration_text(7.9) == "0:07");
  CHECK(nn::duration_text(754) == "12:34");
  CHECK(nn::duration_text(3723) == "1:02:03");
  CHECK(nn::duration_text(200000) == "55:33:20");
  CHECK(nn::duration_text(1e300) == "99999:00:00");
  CHECK(nn::duration_text(-1) == "0:00");
}

TEST_CASE("a bar of progress fits a terminal of any width") {
  for (int columns = 0; columns < 200; ++columns) {
    for (std::int64_t total : {-1, 0, 1000}) {
      std::string bar = progress_bar(state(total, 500, 10), columns);
      CHECK(nn::terminal_columns(bar) <= columns);
      if (columns >= 80 && total >= 0) CHECK(nn::terminal_columns(bar) >= columns - 1);
    }
  }
  CHECK_THAT(progress_bar(state(1000, 500, 10), 73), contains("[##########          ]"));
}

TEST_CASE("a bar of progress is not cut within a character, and knows wide ones") {
  CHECK(nn::terminal_columns("größe") == 5);
  CHECK(nn::terminal_columns("訓練") == 4);
  CHECK(nn::terminal_columns("e\u0301") == 1);
  ProgressState wide{"訓練中", "trees", 10, 5, 0.25, 1};
  CHECK(progress_bar(wide, 3) == "訓");
  CHECK(progress_bar(wide, 4) == "訓練");
}

TEST_CASE("progress is a bar on a terminal, as wide as its window is at the time") {
  std::string text = output_of("xterm", 100, two_steps(40));
  std::size_t first = text.find("\x1b[K"), second = text.find("\x1b[K", first + 1);
  REQUIRE(second != std::string::npos);
  CHECK(text.substr(0, first).size() == 100);  // a carriage return and 99 columns
  CHECK(text.substr(first + 3, second - first - 3).size() == 40);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(text.ends_with("\r\x1b[K"));
}

TEST_CASE("progress writes no control characters to pipes and plain terminals") {
  for (const std::string& text : {output_of("xterm", 0, two_steps(0)), output_of("dumb", 80, two_steps(80)),
                                  output_of(nullptr, 80, two_steps(80))})
    CHECK(std::none_of(text.begin(), text.end(), [](char c) { return c == '\x1b' || c == '\r'; }));
}

TEST_CASE("a terminal has no bar that was removed, and nothing of progress that was not shown") {
  std::string removed = output_of("xterm", 100, [] {
    train::Progress progress("epoch 1/2", 1000, "steps");
    advance_twice(progress, 100);
    progress.clear();
    std::fputs("removed", stdout);
    progress.clear();
  });
  CHECK(removed.ends_with("\r\x1b[Kremoved"));
  std::string quick = output_of("xterm", 100, [] {
    train::Progress progress("epoch 1/2", 1000, "steps");
    progress.advance(1000, 0.5);
  });
  CHECK(quick.empty());
  std::string quiet = output_of("xterm", 100, [] {
    nn::Linear model(1, 1);
    optim::SGD sgd(model.parameters());
    auto slow = [](const Tensor& p, const Tensor& y) {
      std::this_thread::sleep_for(std::chrono::milliseconds(105));
      return mse_loss(p, y);
    };
    train::fit(model, slow, sgd, {ones({2, 1}), ones({2, 1})}, {.epochs = 1, .batch_size = 1, .prints = false});
  });
  CHECK(quiet.empty());
}
