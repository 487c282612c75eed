#include <memory>

#include "cases.h"
#include "operands.h"

namespace reel_bench {

namespace {

using reel::Tensor;

struct Window {
  std::string name;
  reel::Shape x, w;
  std::int64_t stride, padding, groups;
  bool transposed;
};

Tensor ours(const Window& c, const Tensor& x, const Tensor& w) {
  if (c.transposed)
    return reel::conv_transposed2d(x, w, {.stride = c.stride, .padding = c.padding, .groups = c.groups});
  return reel::conv2d(x, w, {.stride = c.stride, .padding = c.padding, .groups = c.groups});
}

at::Tensor theirs(const Window& c, const at::Tensor& x, const at::Tensor& w) {
  return at::convolution(x, w, {}, {c.stride, c.stride}, {c.padding, c.padding}, {1, 1}, c.transposed, {0, 0},
                         c.groups);
}

// Multiplications and additions: each element of the smaller side's, for each weight of its channel.
double work_of(const Window& c, const Tensor& y) {
  double elements = static_cast<double>(c.transposed ? c.x.numel() : y.numel());
  return 2 * elements * static_cast<double>(c.w[1] * c.w[2] * c.w[3]);
}

PeerCase forward(const Window& c, const std::string& name) {
  Pair x = numbers(c.x), w = numbers(c.w);
  double work = work_of(c, ours(c, x.ours, w.ours));
  return {"convolve", name, work, "GFLOP/s", [=] { ours(c, x.ours, w.ours); }, [=] { theirs(c, x.theirs, w.theirs); }};
}

PeerCase backward(const Window& c, const std::string& name, bool backward_data) {
  Pair x = numbers(c.x), w = numbers(c.w);
  auto tape = std::make_shared<reel::Tape>(reel::TapeOptions{.persistent = true});
  Tensor source = backward_data ? x.ours : w.ours;
  tape->watch(source);
  Tensor y = ours(c, x.ours, w.ours);
  Pair d = numbers(y.shape());
  return {"convolve",
          name,
          work_of(c, y),
          "GFLOP/s",
          [=] { tape->gradient(y, source, {.seed = d.ours}); },
          [=] {
            at::convolution_backward(d.theirs, x.theirs, w.theirs, c10::nullopt, {c.stride, c.stride},
                                     {c.padding, c.padding}, {1, 1}, c.transposed, {0, 0}, c.groups,
                                     {backward_data, !backward_data, false});
          }};
}

}  // namespace

std::vector<PeerEntry> convolve_cases() {
  const Window windows[] = {
      {"(64, 32, 26, 26) x (64, 32, 3, 3)", {64, 32, 26, 26}, {64, 32, 3, 3}, 1, 0, 1, false},
      {"(16, 64, 56, 56) x (128, 64, 3, 3)", {16, 64, 56, 56}, {128, 64, 3, 3}, 1, 0, 1, false},
      {"the same with padding 1", {16, 64, 56, 56}, {128, 64, 3, 3}, 1, 1, 1, false},
      {"depthwise (32, 64, 56, 56) 3x3", {32, 64, 56, 56}, {64, 1, 3, 3}, 1, 1, 64, false},
      {"transposed (16, 64, 28, 28) 4x4", {16, 64, 28, 28}, {64, 32, 4, 4}, 2, 1, 1, true},
      {"1x1 (16, 64, 56, 56) x (128, 64)", {16, 64, 56, 56}, {128, 64, 1, 1}, 1, 0, 1, false},
      {"(8, 3, 224, 224) x (64, 3, 7, 7)", {8, 3, 224, 224}, {64, 3, 7, 7}, 2, 3, 1, false},
      {"(8, 512, 7, 7) x (512, 512, 3, 3)", {8, 512, 7, 7}, {512, 512, 3, 3}, 1, 1, 1, false},
  };
  std::vector<PeerEntry> entries;
  for (const Window& c : windows) {
    entries.push_back({"convolve", c.name, [=] { return forward(c, c.name); }});
    for (bool backward_data : {true, false}) {
      std::string name = c.name + (backward_data ? " by data" : " by weights");
      entries.push_back({"convolve", name, [=] { return backward(c, name, backward_data); }});
    }
  }
  return entries;
}

}  // namespace reel_bench
