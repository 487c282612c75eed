#include <ATen/ATen.h>

#include <torch/csrc/autograd/autograd.h>

#include <memory>

#include "cases.h"
#include "operands.h"

namespace reel_bench {

namespace {

using reel::Tape;
using reel::Tensor;

constexpr double bytes = 4;

// Times only the forward.
void add_layer_norm(std::vector<PeerEntry>& entries) {
  constexpr std::int64_t rows = 4096, width = 1024;
  entries.push_back({"normalise", "layer_norm (4096, 1024)", [] {
                       Pair x = numbers({rows, width}), w = numbers({width}), b = numbers({width});
                       return PeerCase{"normalise",
                                       "layer_norm (4096, 1024)",
                                       2 * bytes * rows * width,
                                       "GB/s",
                                       [=] { reel::layer_norm(x.ours, {width}, w.ours, b.ours); },
                                       [=] { at::layer_norm(x.theirs, {width}, w.theirs, b.theirs); }};
                     }});
}

// A function of x, a weight and a bias.
struct Layer {
  std::string name;
  reel::Shape x, parameter;
  double passes;  // over x and tensors of its size
  std::function<Tensor(const Tensor& x, const Tensor& w, const Tensor& b)> ours;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b)> theirs;
};

void add_forward_and_backward(std::vector<PeerEntry>& entries, const Layer& layer) {
  std::string name = layer.name + " both ways";
  entries.push_back(
      {"normalise", name, [=] {
         Pair x = numbers(layer.x), w = numbers(layer.parameter), b = numbers(layer.parameter), d = numbers(layer.x);
         for (Pair* pair : {&x, &w, &b}) pair->theirs.set_requires_grad(true);
         return PeerCase{
             "normalise",
             name,
             layer.passes * bytes * static_cast<double>(layer.x.numel()),
             "GB/s",
             [=] {
               Tape tape;
               for (const Pair* pair : {&x, &w, &b}) tape.watch(pair->ours);
               Tensor y = layer.ours(x.ours, w.ours, b.ours);
               static_cast<void>(tape.gradient(y, std::vector<Tensor>{x.ours, w.ours, b.ours}, {.seed = d.ours}));
             },
             [=] {
               TorchRecords records;
               at::Tensor y = layer.theirs(x.theirs, w.theirs, b.theirs);
               static_cast<void>(torch::autograd::grad({y}, {x.theirs, w.theirs, b.theirs}, {d.theirs}));
             }};
       }});
}

const reel::Shape images{32, 64, 56, 56};
constexpr std::int64_t channels = 64;

void add_batch_norm(std::vector<PeerEntry>& entries, bool training) {
  std::string name = std::string("batch_norm ") + (training ? "train" : "inference") + " (32, 64, 56, 56)";
  entries.push_back(
      {"normalise", name, [=] {
         Pair x = numbers(images), w = numbers({channels}), b = numbers({channels}), mean = numbers({channels}),
              variance = numbers({channels});
         return PeerCase{
             "normalise",
             name,
             2 * bytes * static_cast<double>(images.numel()),
             "GB/s",
             [=] { reel::batch_norm(x.ours, w.ours, b.ours, mean.ours, variance.ours, {.training = training}); },
             [=] {
               at::batch_norm(x.theirs, w.theirs, b.theirs, mean.theirs, variance.theirs, training, 0.1, 1e-5, false);
             }};
       }});
}

struct PoolCase {
  std::string name;
  std::function<Tensor(const Tensor& x)> ours;
  std::function<at::Tensor(const at::Tensor& x)> theirs;
  bool backward;
};

// Forward, or backward alone.
void add_pool(std::vector<PeerEntry>& entries, const PoolCase& one) {
  std::string name = one.name + (one.backward ? " backward" : "");
  entries.push_back(
      {"pool", name, [=] {
         Pair x = numbers(images);
         double work = bytes * static_cast<double>(images.numel());
         if (!one.backward)
           return PeerCase{"pool", name, work, "GB/s", [=] { one.ours(x.ours); }, [=] { one.theirs(x.theirs); }};
         auto tape = std::make_shared<Tape>(reel::TapeOptions{.persistent = true});
         tape->watch(x.ours);
         Tensor y = one.ours(x.ours);
         TorchRecords records;
         x.theirs.set_requires_grad(true);
         at::Tensor result = one.theirs(x.theirs);
         Pair d = numbers(y.shape());
         return PeerCase{"pool",
                         name,
                         work,
                         "GB/s",
                         [=] { static_cast<void>(tape->gradient(y, x.ours, {.seed = d.ours})); },
                         [=] {
                           TorchRecords recorded;
                           static_cast<void>(torch::autograd::grad({result}, {x.theirs}, {d.theirs}, true));
                         }};
       }});
}

void add_pools(std::vector<PeerEntry>& entries) {
  for (bool backward : {false, true})
    for (std::int64_t window : {2, 3}) {
      std::string size = std::to_string(window);
      std::string text = size + "x" + size + "/2 (32, 64, 56, 56)";
      add_pool(entries, {"max_pool2d " + text, [=](auto& x) { return reel::max_pool2d(x, window, {.stride = 2}); },
                         [=](auto& x) {
                           return std::get<0>(at::max_pool2d_with_indices(x, {window, window}, {2, 2}));
                         },
                         backward});
      add_pool(entries, {"avg_pool2d " + text, [=](auto& x) { return reel::avg_pool2d(x, window, {.stride = 2}); },
                         [=](auto& x) {
                           return at::avg_pool2d(x, {window, window}, {2, 2});
                         },
                         backward});
    }
}

}  // namespace

std::vector<PeerEntry> normalise_cases() {
  std::vector<PeerEntry> entries;
  add_pools(entries);
  add_layer_norm(entries);
  add_forward_and_backward(entries, {"layer_norm (4096, 1024)",
                                     {4096, 1024},
                                     {1024},
                                     5,
                                     [](auto& x, auto& w, auto& b) { return reel::layer_norm(x, {1024}, w, b); },
                                     [](auto& x, auto& w, auto& b) { return at::layer_norm(x, {1024}, w, b); }});
  add_batch_norm(entries, true);
  add_batch_norm(entries, false);
  Pair mean = numbers({channels}), variance = numbers({channels});
  add_forward_and_backward(entries, {"batch_norm train (32, 64, 56, 56)",
                                     images,
                                     {channels},
                                     5,
                                     [=](auto& x, auto& w, auto& b) {
                                       return reel::batch_norm(x, w, b, mean.ours, variance.ours, {.training = true});
                                     },
                                     [=](auto& x, auto& w, auto& b) {
                                       return at::batch_norm(x, w, b, mean.theirs, variance.theirs, true, 0.1, 1e-5,
                                                             false);
                                     }});
  return entries;
}

}  // namespace reel_bench
