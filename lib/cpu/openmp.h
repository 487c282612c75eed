#pragma once

// GNU OpenMP by name, since its own header comes with some compilers only. Our loops take from it how many threads they
// may use (parallel.h); its threads themselves only work in oneDNN's largest products.
extern "C" {
int omp_get_max_threads();
int omp_in_parallel();
void omp_set_num_threads(int count);
}

namespace reel::detail {

/// While it lives, the calling thread's OpenMP regions have one thread.
class OneThread {
 public:
  explicit OneThread(bool wanted = true) : before_(wanted ? omp_get_max_threads() : 0) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ > 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// Gives the calling thread's floating-point mode to the OpenMP threads that work for it. To be called before a library's
/// parallel region; what it costs, it costs only after the mode has changed.
void share_floating_point_mode();
/// The program's own regions may have started threads in any mode since they were last seen.
void forget_openmp_mode();

/// Whether this process was forked: OpenMP then waits for threads that stayed in the parent.
bool openmp_threads_are_lost();

}  // namespace reel::detail
