#include "../../device/number.h"
#include "../../device/offsets.h"
#include "../../runtime/cuda_kernels.h"
#include "scan.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

// For elements in row-major order, whether they are not 0.
struct Truths {
  Offsets<1> offsets;
  const void* data;
  DType dtype;
  bool contiguous;
  std::int64_t count;

  explicit Truths(const View& x)
      : offsets(Iteration<1>({&x})), data(x.data), dtype(x.dtype), contiguous(x.contiguous), count(x.numel) {}

  REEL_DEVICE bool at(std::int64_t i) const {
    std::int64_t offset[1] = {i};
    if (!contiguous) offsets.find(i, offset);
    if (is_floating(dtype)) return number_at<double>(dtype, data, offset[0]) != 0;
    return number_at<std::int64_t>(dtype, data, offset[0]) != 0;
  }
};

struct CountLaw {
  using State = std::int64_t;
  REEL_DEVICE State nothing() const { return 0; }
  REEL_DEVICE State join(State a, State b) const { return a + b; }
};

constexpr int threads = 256;
constexpr std::int64_t items = 8, tile = threads * items;

std::int64_t tiles_of(std::int64_t count) { return (count + tile - 1) / tile; }

// Counts the elements of each tile that are not 0; the count after the last tile is 0.
struct CountTiles {
  Truths truths;
  std::int64_t tiles;
  std::int64_t* counts;

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    std::int64_t start = group.index() * tile;
    auto counted = group.template per_thread<std::int64_t>();
    group.each([&](int thread) {
      counted[thread] = 0;
      for (std::int64_t i = start + thread; i < start + tile && i < truths.count; i += group.size())
        counted[thread] += truths.at(i);
    });
    std::int64_t count = group.reduce(counted, [](std::int64_t a, std::int64_t b) { return a + b; });
    group.each([&](int thread) {
      if (thread != 0) return;
      counts[group.index()] = count;
      if (group.index() == 0) counts[tiles] = 0;
    });
  }
};

// Replaces the counts (tiles + 1) by the number of elements before each tile: the last is the total.
void count_before_tiles(const Truths& truths, std::int64_t* counts) {
  std::int64_t tiles = tiles_of(truths.count);
  for_each_block(tiles, threads, 0, CountTiles{truths, tiles, counts});
  join_before(CountLaw(), counts, tiles + 1, 1);
}

std::int64_t nonzero_count(const View& x) {
  if (x.numel == 0) return 0;
  std::int64_t tiles = tiles_of(x.numel);
  Scratch scratch(static_cast<std::size_t>(tiles + 1) * sizeof(std::int64_t));
  auto* counts = scratch.as<std::int64_t>();
  count_before_tiles(Truths(x), counts);
  return read_from_device(counts + tiles, "the number of elements that are not 0");
}

struct WritePlaces {
  Truths truths;
  const std::int64_t* before_tiles;
  std::int64_t* out;
  std::int64_t room;
  int rank;
  std::int64_t dims[8];

  template <class Group>
  REEL_DEVICE void operator()(Group& group) const {
    auto before = group.template per_thread<std::int64_t>();
    auto for_each_truth = [&](int thread, auto f) {
      std::int64_t first = group.index() * tile + thread * items;
      for (std::int64_t i = first; i < first + items && i < truths.count; ++i)
        if (truths.at(i)) f(i);
    };
    group.each([&](int thread) {
      before[thread] = 0;
      for_each_truth(thread, [&](std::int64_t) { ++before[thread]; });
    });
    group.scan(before, std::int64_t{0}, [](std::int64_t a, std::int64_t b) { return a + b; });
    group.each([&](int thread) {
      std::int64_t line = before_tiles[group.index()] + before[thread];
      for_each_truth(thread, [&](std::int64_t i) {
        if (line < room) write(line++, i);
      });
    });
  }

 private:
  REEL_DEVICE void write(std::int64_t line, std::int64_t i) const {
    for (int axis = rank; axis-- > 0; i /= dims[axis]) out[line * rank + axis] = i % dims[axis];
  }
};

void nonzero(const View& out, const View& x) {
  if (out.numel == 0) return;
  std::int64_t tiles = tiles_of(x.numel);
  Scratch scratch(static_cast<std::size_t>(tiles + 1) * sizeof(std::int64_t));
  auto* counts = scratch.as<std::int64_t>();
  count_before_tiles(Truths(x), counts);
  WritePlaces places{Truths(x), counts, out.as<std::int64_t>(), out.dims[0], x.rank, {}};
  for (int axis = 0; axis < x.rank; ++axis) places.dims[axis] = x.dims[axis];
  for_each_block(tiles, threads, 0, places);
}

}  // namespace

void fill_nonzero(KernelTable& table) {
  table.nonzero_count = nonzero_count;
  table.nonzero = nonzero;
}

}  // namespace reel::detail::inline REEL_TARGET
