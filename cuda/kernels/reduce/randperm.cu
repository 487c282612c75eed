#include "../../device/number.h"
#include "../../device/random_call.h"
#include "../../device/sorted_rows.h"
#include "../../runtime/cuda_kernels.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

struct RandomKeys {
  DeviceCall call;
  int bits = 64;
  REEL_DEVICE std::int64_t start(std::int64_t) const { return 0; }
  REEL_DEVICE std::uint64_t key(std::int64_t, std::int64_t place) const {
    PhiloxWords w = call.words(place);
    return static_cast<std::uint64_t>(w.word[0]) << 32 | w.word[1];
  }
};

struct Places {
  void* out;
  DType dtype;
  template <class Sorted>
  REEL_DEVICE void operator()(std::int64_t, std::int64_t k, const Sorted& sorted) const {
    put_number(dtype, out, k, sorted.place(k));
  }
};

void randperm(const View& out, RandomCall call) {
  sort_rows(RandomKeys{DeviceCall(call)}, Places{out.data, out.dtype}, 1, out.numel, out.numel);
}

}  // namespace

void fill_randperm(KernelTable& table) { table.randperm = randperm; }

}  // namespace reel::detail::inline REEL_TARGET
