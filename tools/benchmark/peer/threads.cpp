#include <ATen/Parallel.h>

#include "timing.h"

// Both libraries run on GNU OpenMP.
extern "C" {
void omp_set_num_threads(int count);
}

namespace reel_bench {

void set_library_threads(int count) {
  omp_set_num_threads(count);
  at::set_num_threads(count);
}

}  // namespace reel_bench
