#pragma once

#include <reel/detail/immovable.h>

// GNU OpenMP by name, since its own header comes with some compilers only. Our loops take from it how many threads they
// may use (parallel.h), and run on threads of their own.
extern "C" {
int omp_get_max_threads();
int omp_in_parallel();
void omp_set_num_threads(int count);
}

namespace reel::detail {

/// While it lives, the calling thread's OpenMP regions have one thread.
class OneThread : Immovable {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) omp_set_num_threads(before_);
  }

 private:
  int before_;
};

}  // namespace reel::detail
