#include <reel/dist/run.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include <reel/train/interruption.h>

#include "signals.h"

namespace reel::dist {

int run(const std::function<int()>& body, RunOptions options, Location where) {
  // Before MPI starts threads of its own, which would receive them.
  detail::hold_signals();
  Group all(where);
  if (all.size() == 1) {
    detail::release_signals();
    return body();
  }
  if (options.quiet && all.rank() > 0 && !std::freopen("/dev/null", "w", stdout))
    all.abort("stdout cannot be redirected to /dev/null");
  try {
    int status = body();
    // After a signal all ranks end together, each when it has saved what it saves.
    if (status != 0 && !detail::signal_was_delivered())
      all.abort("the program has ended with status " + std::to_string(status), status);
    return status;
  } catch (const train::Interrupted& interrupted) {
    return interrupted.exit_status();
  } catch (const std::bad_alloc&) {
    all.abort("there is not enough memory");
  } catch (const std::exception& error) {
    all.abort(error.what());
  }
}

}  // namespace reel::dist
