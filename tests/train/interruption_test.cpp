#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>

#include <reel/train/interruption.h>

#include "catch.h"

using namespace reel;
using reel_test::error_of;

namespace {

// The signal that a check reports; 0 if none has arrived.
int told() {
  try {
    train::check_interruption();
    return 0;
  } catch (const train::Interrupted& interrupted) {
    return interrupted.signal();
  }
}

// Calls f in a forked process. Returns its exit status, or the negated signal that ended it.
int end_of(const std::function<int()>& f) {
  pid_t child = fork();
  if (child == 0) {
    // The process that runs the tests may ignore these signals.
    for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
    _exit(f());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("signals that end programs are told of while an interruption lives") {
  for (int number : {SIGINT, SIGTERM, SIGHUP})
    CHECK(end_of([&] {
            train::Interruption interruption;
            if (told() != 0) return 1;
            raise(number);
            return told() == number && told() == number ? 0 : 2;
          }) == 0);
}

TEST_CASE("an interruption names its signal and the exit status that shells expect") {
  CHECK(train::Interrupted(SIGINT).exit_status() == 130);
  CHECK(train::Interrupted(SIGTERM).exit_status() == 143);
  CHECK(train::Interrupted(SIGHUP).what() == std::string("interrupted by SIGHUP"));
}

TEST_CASE("a second signal ends the program at once") {
  for (int second : {SIGINT, SIGTERM})
    for (int first : {SIGINT, SIGTERM, SIGHUP})
      CHECK(end_of([&] {
              train::Interruption interruption;
              raise(first);
              raise(second);
              return 0;
            }) == -second);
}

TEST_CASE("a terminal that closes may send SIGHUP several times") {
  CHECK(end_of([] {
          train::Interruption interruption;
          for (int i = 0; i < 3; ++i) raise(SIGHUP);
          return told() == SIGHUP ? 0 : 1;
        }) == 0);
}

TEST_CASE("after an interruption signals do what they did before") {
  CHECK(end_of([] {
          std::optional<train::Interruption> interruption;
          interruption.emplace();
          raise(SIGTERM);
          if (told() != SIGTERM) return 1;
          interruption.reset();
          if (told() != 0) return 2;
          interruption.emplace();
          if (told() != 0) return 3;
          interruption.reset();
          raise(SIGTERM);
          return 4;
        }) == -SIGTERM);
}

TEST_CASE("a signal that nobody was told of arrives when the interruption ends") {
  CHECK(end_of([] {
          {
            train::Interruption interruption;
            raise(SIGTERM);
          }
          return 0;
        }) == -SIGTERM);
}

TEST_CASE("a signal that the program ignores stays ignored") {
  CHECK(end_of([] {
          signal(SIGHUP, SIG_IGN);
          train::Interruption interruption;
          raise(SIGHUP);
          return told();
        }) == 0);
}

TEST_CASE("a signal that comes to one thread is told of on another") {
  CHECK(end_of([] {
          train::Interruption interruption;
          std::thread([] { raise(SIGTERM); }).join();
          return told() == SIGTERM ? 0 : 1;
        }) == 0);
}

TEST_CASE("a program has one interruption at a time") {
  train::Interruption interruption;
  CHECK(error_of<std::logic_error>([] { train::Interruption second; }).find("another") != std::string::npos);
}
