#include <torch/csrc/autograd/autograd.h>

#include "cases.h"
#include "operands.h"

namespace reel_bench {

namespace {

// The loss of many classes, as a language model has it.
constexpr std::int64_t examples = 4096, classes = 10000;
constexpr double logits_bytes = 4.0 * examples * classes;

void add_losses(std::vector<PeerEntry>& entries) {
  const char *forward = "cross_entropy (4096, 10000)", *both_ways = "cross_entropy (4096, 10000), forward and backward";
  entries.push_back({"loss", forward, [=] {
                       Pair x = numbers({examples, classes}, -4, 4), t = indices(examples, classes);
                       return PeerCase{"loss",
                                       forward,
                                       logits_bytes,
                                       "GB/s",
                                       [=] { reel::cross_entropy(x.ours, t.ours); },
                                       [=] { at::cross_entropy_loss(x.theirs, t.theirs); }};
                     }});
  entries.push_back({"loss", both_ways, [=] {
                       Pair x = numbers({examples, classes}, -4, 4), t = indices(examples, classes);
                       x.theirs.set_requires_grad(true);
                       return PeerCase{"loss",
                                       both_ways,
                                       3 * logits_bytes,
                                       "GB/s",
                                       [=] {
                                         reel::Tape tape;
                                         tape.watch(x.ours);
                                         tape.gradient(reel::cross_entropy(x.ours, t.ours), x.ours);
                                       },
                                       [=] {
                                         TorchRecords records;
                                         at::Tensor loss = at::cross_entropy_loss(x.theirs, t.theirs);
                                         torch::autograd::grad({loss}, {x.theirs});
                                       }};
                     }});
}

}  // namespace

std::vector<PeerEntry> attend_cases() {
  std::vector<PeerEntry> entries;
  add_losses(entries);
  return entries;
}

}  // namespace reel_bench
