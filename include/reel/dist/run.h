#pragma once

#include <functional>

#include <reel/dist/group.h>

namespace reel::dist {

/// Options of `run`.
struct RunOptions {
  /// Whether only rank 0 writes to stdout: what the others print is dropped. Default true.
  bool quiet = true;
};

/// Runs the body of a program's main function on this rank and returns its exit status, after which the program should
/// end:
///
///     return dist::run([&] {
///       train_model();
///       return 0;
///     });
///
/// An exception of one rank ends all of them with exit status 1: it prints "rank 1 of 2: " and the exception's sentence,
/// which names op and line. A status other than 0 ends all ranks, too, if there are several. Where there are several,
/// SIGINT, SIGTERM and SIGHUP wait until `DataParallel` has told all ranks of them, so that a `train::Interrupted` is
/// thrown after one step on all of them.
int run(const std::function<int()>& body, RunOptions options = {}, Location where = Location::here());

}  // namespace reel::dist
