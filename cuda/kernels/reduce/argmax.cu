#include "../../runtime/cuda_kernels.h"
#include "extreme.h"
#include "reduction.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// The index of the largest or smallest element: the first of equal ones, and the first NaN if there is one.
template <class A, bool largest>
struct ArgExtreme {
  struct State {
    A value;
    std::int64_t place;
  };
  using Value = A;
  using Run = State;
  REEL_DEVICE ArgExtreme of(std::int64_t) const { return *this; }
  REEL_DEVICE Run open(Value value, std::int64_t place) const { return {value, place}; }
  REEL_DEVICE void take(Run& run, Value value, std::int64_t place) const {
    if (beats(value, run.value)) run = {value, place};  // indices of a run ascend
  }
  REEL_DEVICE State close(const Run& run) const { return run; }
  REEL_DEVICE State nothing() const { return {worst<A, largest>(), std::numeric_limits<std::int64_t>::max()}; }
  REEL_DEVICE State join(const State& a, const State& b) const {
    if (beats(a.value, b.value)) return a;
    if (beats(b.value, a.value)) return b;
    return a.place < b.place ? a : b;
  }
  REEL_DEVICE void finish(const State& best, std::int64_t result, const Output& out) const {
    out.put(result, best.place);
  }

 private:
  REEL_DEVICE static bool beats(A a, A b) { return (largest ? a > b : a < b) || (a != a && b == b); }
};

template <bool largest>
void arg_extreme(const View& out, const View& x) {
  if (x.numel == 0) return;  // no results then: the op refuses an empty reduction
  ReducedAxes axes(out, x);
  Output to{out.data, out.dtype};
  if (!is_floating(x.dtype)) return reduce(ArgExtreme<std::int64_t, largest>(), Integers(axes, x), to);
  if (x.dtype == DType::f64) return reduce(ArgExtreme<double, largest>(), Elements<double>(axes, x), to);
  reduce_floating(ArgExtreme<float, largest>(), x, axes, to);
}

}  // namespace

void fill_argmax(KernelTable& table) {
  table.reduce[static_cast<int>(Reduction::argmax)] = arg_extreme<true>;
  table.reduce[static_cast<int>(Reduction::argmin)] = arg_extreme<false>;
}

}  // namespace reel::detail::inline REEL_TARGET
