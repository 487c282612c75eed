#pragma once

#include <reel/detail/immovable.h>

// GNU OpenMP by name, since its own header comes with some compilers only. Our loops take from it how many threads they
// may use (parallel.h); only oneDNN's largest products run on its threads.
extern "C" {
int omp_get_max_threads();
int omp_in_parallel();
void omp_set_num_threads(int count);
}

namespace reel::detail {

/// While it lives, the calling thread's OpenMP regions have one thread.
class OneThread : Immovable {
 public:
  explicit OneThread(bool wanted = true) : before_(wanted ? omp_get_max_threads() : 0) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) omp_set_num_threads(before_);
  }

 private:
  int before_;
};

/// Copies the calling thread's floating-point mode to the OpenMP threads that work for it. Called before a library's
/// parallel region; it has a cost only if the mode has changed since.
void share_floating_point_mode();
/// Invalidates the mode last shared: the program's own regions may have started OpenMP threads in any mode since.
void forget_openmp_mode();

/// Returns true if this process was forked: OpenMP would wait for threads that exist in the parent only.
bool openmp_threads_are_lost();

}  // namespace reel::detail
